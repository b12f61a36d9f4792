"""An application on the Python client ``parse_rest`` (a continuation of ParsePy).

Usage: PARSE_API_ROOT=URL python python_client.py APPLICATION_ID REST_KEY MASTER_KEY
Prints one line a check, as JSON: {"name", "error"}.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any

from parse_rest.connection import MasterKey, ParseBatcher, register  # type: ignore[import-not-found]
from parse_rest.core import (  # type: ignore[import-not-found]
    ResourceRequestBadRequest,
    ResourceRequestNotFound,
)
from parse_rest.datatypes import ACL, Function, GeoPoint, Object  # type: ignore[import-not-found]
from parse_rest.query import QueryResourceDoesNotExist  # type: ignore[import-not-found]
from parse_rest.user import User  # type: ignore[import-not-found]

application_id, rest_key, master_key = sys.argv[1:]
register(application_id, rest_key)


class Game(Object):  # type: ignore[misc]
    """A class of objects."""


class Note(Object):  # type: ignore[misc]
    """Another one."""


def an_object_is_saved_changed_and_removed() -> None:
    place = GeoPoint(latitude=10.0, longitude=20.0)
    at = datetime(2020, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001  # as the client has it
    note = Note(text="héllo", stars=3, tags=["a"], box={"a": 1}, at=at, place=place)
    note.save()
    found = Note.Query.get(objectId=note.objectId)
    assert (found.text, found.stars, found.tags, found.box) == ("héllo", 3, ["a"], {"a": 1})
    assert (found.at, found.place.latitude) == (at, 10.0)
    assert isinstance(found.createdAt, datetime)
    found.stars = 4
    found.save()
    found.increment("stars", 2)
    assert Note.Query.get(objectId=note.objectId).stars == 6
    found.delete()
    try:
        Note.Query.get(objectId=note.objectId)
    except QueryResourceDoesNotExist:
        return
    raise AssertionError("it is still there")


def objects_are_saved_in_batches_and_found_by_queries() -> None:
    game = Game(name="chess")
    game.save()
    notes = [Note(number=number, game=game) for number in range(5)]
    ParseBatcher().batch_save(notes)
    assert all(note.objectId for note in notes)
    query = Note.Query.filter(number__gte=1, number__lt=4).order_by("number", descending=True)
    assert [note.number for note in query] == [3, 2, 1]
    assert Note.Query.filter(game=game).count() == 5
    assert Note.Query.filter(number__in=[0, 4]).limit(1).count() == 2
    [note] = Note.Query.filter(number=2).select_related("game")
    assert note.game.name == "chess"
    ParseBatcher().batch_delete(notes)
    assert Note.Query.filter(game=game).count() == 0


def a_user_signs_up_logs_in_and_changes() -> None:
    user = User.signup("ann", "correct horse", nick="a")
    assert user.sessionToken
    user = User.login("ann", "correct horse")
    user.nick = "b"
    user.save()
    assert User.login("ann", "correct horse").nick == "b"
    try:
        User.login("ann", "wrong")
    except ResourceRequestNotFound:
        return
    raise AssertionError("a wrong password was accepted")


def an_access_list_applies_without_the_master_key() -> None:
    note = Note(text="closed")
    note.ACL = ACL()
    note.ACL.set_default(read=False, write=False)
    note.save()
    assert Note.Query.filter(text="closed").count() == 0
    with MasterKey(master_key):
        assert Note.Query.filter(text="closed").count() == 1
        note.delete()


def a_function_that_does_not_exist_is_an_error() -> None:
    try:
        Function("nothing")()
    except ResourceRequestBadRequest as error:
        code = json.loads(error.args[0])["code"]
    else:
        raise AssertionError("there is no such function")
    assert code == 141


def main(checks: list[Callable[[], Any]]) -> None:
    for check in checks:
        error = None
        try:
            check()
        except Exception:
            error = traceback.format_exc()
        print(json.dumps({"name": check.__name__, "error": error}))


if __name__ == "__main__":
    main(
        [
            an_object_is_saved_changed_and_removed,
            objects_are_saved_in_batches_and_found_by_queries,
            a_user_signs_up_logs_in_and_changes,
            an_access_list_applies_without_the_master_key,
            a_function_that_does_not_exist_is_an_error,
        ]
    )
