"""Answers to writes and their errors show nothing that the caller may not read."""

from __future__ import annotations

from typing import Any

import pytest

from functions import before_save
from functions.runtime.registry import registry
from tests.objects.access.tables import PUBLIC
from tests.objects.access.transports import TRANSPORTS
from tests.objects.access.world import make, permit
from tests.people import make_role, sign_up
from tests.rest import Api

STORED: dict[str, Any] = {"score": 7, "tags": ["a"], "stats": {"wins": 3, "names": ["b"]}}
# Operators of which each answers what is stored, without changing it.
ECHOES: list[dict[str, Any]] = [
    {"score": {"__op": "Increment", "amount": 0}},
    {"score": {"__op": "SetOnInsert", "amount": 1}},
    {"tags": {"__op": "Add", "objects": []}},
    {"tags": {"__op": "AddUnique", "objects": []}},
    {"tags": {"__op": "Remove", "objects": []}},
    {"stats": {"__op": "SetOnInsert", "amount": {}}},
    {"stats.wins": {"__op": "SetOnInsert", "amount": 1}},
]
# The same, refused to callers who may not read the object.
REFUSED: list[dict[str, Any]] = [
    {"stats.wins": {"__op": "Increment", "amount": 0}},
    {"stats.names": {"__op": "AddUnique", "objects": []}},
]
ONE_MORE = {"__op": "Increment", "amount": 1}
READ, WRITE = {"read": True}, {"write": True}
BOTH = {**READ, **WRITE}


@pytest.fixture
def callers(master: Api, client: Api) -> dict[str, Api]:
    owner, member, stranger = (sign_up(name) for name in ("owner", "member", "stranger"))
    make_role(master, "Team", [member])
    return {
        "master": master,
        "client": client,
        "owner": owner,
        "member": member,
        "stranger": stranger,
    }


@pytest.fixture
def temporarily():
    """Remove the triggers that a test registers."""
    with registry.temporarily():
        yield


def values(body: dict[str, Any]) -> dict[str, Any]:
    """What an echo of these operators shows of ``STORED``."""
    (path,) = body
    name, _, key = path.partition(".")
    return {name: {key: STORED[name][key]} if key else STORED[name]}


def check_echoes(send, callers, note: str, readers: set[str], writers: set[str]) -> None:
    """Check that answers contain computed values for the readers alone."""
    for name in writers:
        for body in ECHOES + REFUSED:
            reply = send(callers[name], "PUT", f"/classes/Note/{note}", body)
            if name in readers:
                assert reply.json.pop("updatedAt")
                assert reply.json == values(body), (name, body)
            elif body in REFUSED:
                assert reply.json["code"] == 119, (name, body, reply.json)
            else:
                assert set(reply.json) == {"updatedAt"}, (name, body)
    stored = callers["master"].get(f"/classes/Note/{note}").json
    assert {name: stored[name] for name in STORED} == STORED


EVERYONE = {"master", "client", "owner", "member", "stranger"}


def test_an_access_list_that_lets_a_caller_write_shows_nothing(callers, send):
    acl = {callers["owner"].user_id: READ, "role:Team": READ, "*": WRITE}
    note = make("Note", **STORED, ACL=acl)
    check_echoes(send, callers, note, {"master", "owner", "member"}, EVERYONE)


@pytest.mark.parametrize("action", ["get", "find"])
def test_a_class_that_is_closed_for_reading_shows_nothing(callers, send, action):
    note = make("Note", **STORED)
    reading = {"get": {}, "find": {}, "count": {}}
    readers = {callers["owner"].user_id: True, "role:Team": True}
    permit("Note", **{**PUBLIC, **reading, action: readers})
    check_echoes(send, callers, note, {"master", "owner", "member"}, EVERYONE)


def test_pointers_that_let_a_user_write_show_nothing(callers, send):
    note = make(
        "Note", **STORED, editor=callers["stranger"].pointer, reader=callers["owner"].pointer
    )
    permit("Note", writeUserFields=["editor", "reader"], readUserFields=["reader"])
    check_echoes(send, callers, note, {"master", "owner"}, {"master", "owner", "stranger"})


def test_a_field_that_is_added_shows_nothing(callers, send):
    for number, name in enumerate(("client", "stranger")):
        note = make("Note", **STORED, ACL={"*": WRITE})
        body = {f"new{number}": 1, "score": {"__op": "Increment", "amount": 0}}
        reply = send(callers[name], "PUT", f"/classes/Note/{note}", body)
        assert set(reply.json) == {"updatedAt"}


@pytest.mark.parametrize("operation", [ECHOES[0], ECHOES[3]], ids=["statement", "locked"])
def test_the_access_list_that_a_write_leaves_decides(callers, send, operation):
    """An update shows what a get right after it would show."""
    stranger, owner = callers["stranger"], callers["owner"]
    taken = make("Note", **STORED, ACL={"*": WRITE})
    body = {**operation, "ACL": {stranger.user_id: BOTH}}
    reply = send(stranger, "PUT", f"/classes/Note/{taken}", body)
    assert reply.json.items() >= values(operation).items()
    given_away = make("Note", **STORED, ACL={owner.user_id: BOTH})
    body = {**operation, "ACL": {stranger.user_id: BOTH}}
    reply = send(owner, "PUT", f"/classes/Note/{given_away}", body)
    assert set(reply.json) == {"updatedAt"}
    assert send(owner, "GET", f"/classes/Note/{given_away}", None).json["code"] == 101


def test_changes_by_triggers_are_shown_to_readers_alone(callers, send, temporarily):
    @before_save("Note")
    def rate(request):
        request.object["rating"] = request.object["score"] * 10

    acl = {callers["owner"].user_id: BOTH, "role:Team": BOTH, "*": WRITE}
    note = make("Note", **STORED, ACL=acl)
    for number, name in enumerate(sorted(EVERYONE)):
        body = {"score": number}
        reply = send(callers[name], "PUT", f"/classes/Note/{note}", body)
        is_reader = name in ("master", "owner", "member")
        assert reply.json.get("rating") == (number * 10 if is_reader else None), name
        assert set(reply.json) == ({"updatedAt", "rating"} if is_reader else {"updatedAt"})
        made = send(callers[name], "POST", "/classes/Note", {**body, "ACL": acl})
        assert made.json.get("rating") == (number * 10 if is_reader else None), name
        made = send(callers[name], "POST", "/classes/Note", body)
        assert made.json["rating"] == number * 10


def test_defaults_of_an_object_that_its_creator_may_not_read_are_left_out(callers, send):
    fields = {"plan": {"type": "String", "defaultValue": "trial"}}
    callers["master"].post("/schemas/Note", {"fields": fields})
    for name, acl in (("stranger", {}), ("client", {callers["owner"].user_id: BOTH})):
        made = send(callers[name], "POST", "/classes/Note", {"ACL": acl})
        assert set(made.json) == {"objectId", "createdAt"}
        assert send(callers[name], "POST", "/classes/Note", {}).json["plan"] == "trial"


def test_many_creates_of_a_batch_show_no_more_than_one(callers):
    fields = {"plan": {"type": "String", "defaultValue": "trial"}}
    callers["master"].post("/schemas/Note", {"fields": fields})
    create = {"method": "POST", "path": "/api/classes/Note"}
    requests = [{**create, "body": body} for body in ({"ACL": {}}, {}, {"ACL": {}})]
    for transaction in (False, True):
        body = {"requests": requests, "transaction": transaction}
        closed, open_, also_closed = callers["client"].post("/batch", body).json
        assert set(closed["success"]) == set(also_closed["success"]) == {"objectId", "createdAt"}
        assert open_["success"]["plan"] == "trial"


def test_a_sign_up_shows_new_users_their_own_values(master, client, send, temporarily):
    @before_save("_User")
    def greet(request):
        request.object["credits"] = 5

    reply = send(client, "POST", "/users", {"username": "new", "password": "correct horse"})
    assert reply.json["credits"] == 5
    assert reply.json["sessionToken"]


def test_an_installation_that_registers_again_is_shown_to_readers_alone(callers, client, send):
    body = {"installationId": "i-1", "deviceType": "ios", "badge": 3}
    acl = {callers["owner"].user_id: READ, "*": WRITE}
    callers["master"].post("/installations", {**body, "ACL": acl})
    again = {
        "installationId": "i-1",
        "deviceType": "ios",
        "badge": {"__op": "Increment", "amount": 0},
    }
    for route in ("/installations", "/classes/_Installation"):
        assert "badge" not in send(client, "POST", route, again).json
        assert "badge" not in send(callers["stranger"], "POST", route, again).json
        assert send(callers["owner"], "POST", route, again).json["badge"] == 3


# -- Errors ---------------------------------------------------------------------------------------

CONTENTS: list[dict[str, Any]] = [
    {},
    {"score": 0, "tags": [], "stats": {}},
    {"score": -(10**307), "tags": [1, 2, 3], "stats": {"a": 1, "b": {"c": 1}}},
    {"score": 10**307, "tags": [[1]], "stats": {"a": "text", "b": "text"}},
    {"score": 0.5, "tags": ["x", {"b": 1}], "stats": {"a": [1, 2], "b": [{"c": "text"}]}},
    {"score": None, "tags": None, "stats": {"a": None, "b": {"__type": "Bytes", "base64": ""}}},
    {"score": 1e300, "tags": [None], "stats": {"a": {"a": 1}, "b": True}},
]


def _operators(path: str) -> list[dict[str, Any]]:
    return [
        {path: "value"},
        {path: {"__op": "Delete"}},
        {path: {"__op": "SetOnInsert", "amount": 1}},
        {path: {"__op": "Increment", "amount": 1}},
        {path: {"__op": "Increment", "amount": 9 * 10**999}},
        {path: {"__op": "Add", "objects": [1]}},
        {path: {"__op": "AddUnique", "objects": [1]}},
        {path: {"__op": "Remove", "objects": [1]}},
    ]


PROBES: list[dict[str, Any]] = [
    *({"score": {"__op": "Increment", "amount": n}} for n in (1, -1, 0.5, 2**63, -(2**63), 1e18)),
    *({"score": {"__op": "Increment", "amount": n}} for n in (2**64, 9 * 10**999, 1.7e308)),
    *({"tags": {"__op": op, "objects": [1]}} for op in ("Add", "AddUnique", "Remove")),
    {"score": 1, "tags": [1], "stats": {"a": 1}},
    *(
        body
        for path in ("stats.a", "stats.b.c", "stats.a.0", "tags.0", "tags.2", "tags.0.b")
        for body in _operators(path)
    ),
]


def closed_object(content: dict[str, Any]) -> str:
    return make("Note", **content, ACL={"*": WRITE})


def protected_fields(content: dict[str, Any]) -> str:
    return make("Note", **content)


@pytest.mark.parametrize("has_trigger", [False, True], ids=["plain", "with a trigger"])
@pytest.mark.parametrize("closed", [closed_object, protected_fields])
@pytest.mark.slow
def test_success_and_errors_do_not_depend_on_unreadable_values(
    callers, closed, has_trigger, temporarily
):
    if has_trigger:
        before_save("Note")(lambda request: None)
    make("Note", score=1, tags=[], stats={})
    if closed is protected_fields:
        permit("Note", **PUBLIC, protectedFields={"*": ["score", "tags", "stats"]})
    for probe in PROBES:
        for name in ("client", "stranger"):
            answers = []
            for content in CONTENTS:
                reply = callers[name].put(f"/classes/Note/{closed(content)}", probe)
                reply.json.pop("updatedAt", None)
                answers.append((reply.status, reply.json))
            assert all(answer == answers[0] for answer in answers), (name, probe, answers)
            assert answers[0][0] in (200, 400)


def test_ranges_and_constraints_of_columns_tell_no_number(callers, send):
    """``pages`` is a bigint that is never below 0, so a sum out of range would tell the number."""
    books = [make("Book", pages=pages, ACL={"*": WRITE}) for pages in (0, 300, 2**63 - 1)]
    for amount in (1, -1, -200, 2**62, 0.5):
        body = {"pages": {"__op": "Increment", "amount": amount}}
        for name in ("client", "stranger"):
            for book in books:
                reply = send(callers[name], "PUT", f"/classes/Book/{book}", body)
                assert reply.json["code"] == 119, (name, amount)
    readable = make("Book", pages=300)
    reply = send(callers["stranger"], "PUT", f"/classes/Book/{readable}", {"pages": ONE_MORE})
    assert reply.json["pages"] == 301


def test_one_refusal_on_every_transport(callers, send):
    note = make("Note", **STORED, ACL={callers["owner"].user_id: BOTH, "*": WRITE})
    missing = {"stats.wins.deeper": 1}
    number = {"stats.wins": {"__op": "Increment", "amount": 1}}
    for name in ("client", "stranger", "member"):
        for body in (missing, number):
            reply = send(callers[name], "PUT", f"/classes/Note/{note}", body)
            assert reply.json["code"] == 119, (name, body)
            assert "not allowed to read" in reply.json["error"]
    assert send(callers["owner"], "PUT", f"/classes/Note/{note}", missing).json["code"] == 111
    assert send(callers["owner"], "PUT", f"/classes/Note/{note}", number).json["stats"] == {
        "wins": 4
    }


def test_fields_protected_from_some_are_changed_by_path_by_the_others(callers, send):
    note = make("Note", **STORED, owner=callers["owner"].pointer)
    protected = {"*": ["stats"], "role:Team": [], "userField:owner": []}
    permit("Note", **PUBLIC, protectedFields=protected)
    body = {"stats.wins": {"__op": "Increment", "amount": 1}}
    for name in ("owner", "member", "master"):
        reply = send(callers[name], "PUT", f"/classes/Note/{note}", body)
        assert "code" not in reply.json, (name, reply.json)
    for name in ("client", "stranger"):
        assert send(callers[name], "PUT", f"/classes/Note/{note}", body).json["code"] == 119
    assert callers["master"].get(f"/classes/Note/{note}").json["stats"]["wins"] == 6


@pytest.mark.parametrize("closed", [closed_object, protected_fields])
def test_a_counter_or_list_that_is_not_readable_is_still_changed(callers, closed, send):
    note = closed(STORED)
    if closed is protected_fields:
        permit("Note", **PUBLIC, protectedFields={"*": ["score", "tags", "stats"]})
    body = {
        "score": {"__op": "Increment", "amount": 1},
        "tags": {"__op": "AddUnique", "objects": ["b"]},
        "stats.losses": 2,
        "stats.names": {"__op": "Delete"},
    }
    reply = send(callers["stranger"], "PUT", f"/classes/Note/{note}", body)
    assert set(reply.json) == {"updatedAt"}
    stored = callers["master"].get(f"/classes/Note/{note}").json
    assert stored["score"] == 8
    assert stored["tags"] == ["a", "b"]
    assert stored["stats"] == {"wins": 3, "losses": 2}


def test_a_transaction_that_is_undone_tells_no_member_of_a_list(callers):
    """Removing a guess and writing behind the end tells the length, and so the guess."""
    for closed in (closed_object, protected_fields):
        note = closed({"tags": ["right", "other"]})
        if closed is protected_fields:
            permit("Note", **PUBLIC, protectedFields={"*": ["tags"]})
        answers = []
        for guess in ("right", "wrong"):
            change = {"method": "PUT", "path": f"/api/classes/Note/{note}"}
            requests = [
                {**change, "body": {"tags": {"__op": "Remove", "objects": [guess]}}},
                {**change, "body": {"tags.2": "x"}},
            ]
            body = {"requests": requests, "transaction": True}
            answers.append(callers["stranger"].post("/batch", body).json)
        assert answers[0] == answers[1]
        assert callers["master"].get(f"/classes/Note/{note}").json["tags"] == ["right", "other"]


@pytest.mark.slow
def test_a_write_tells_nothing_of_an_object_that_the_caller_may_neither_read_nor_change(callers):
    """The error is that of an object that doesn't exist, for every kind of write."""
    note = make("Note", **STORED, ACL={callers["owner"].user_id: BOTH})
    for send in TRANSPORTS:
        for body in [*ECHOES, *REFUSED, *PROBES]:
            answers = [
                send(callers["stranger"], "PUT", f"/classes/Note/{object_id}", body).json
                for object_id in (note, "doesntexist")
            ]
            assert answers[0] == answers[1], (send, body)
            assert answers[0]["code"] in (101, 111)
