"""The service does what the document says: schemathesis makes requests of it, right and wrong
ones, and looks at each answer.

For every operation it goes through the borders of each value (the same ones every time), and
makes up a few requests besides. No answer may be a 5xx; status, type, headers and body are as
described; what the document excludes is refused, and whatever isn't a method of a route is 405.
``script/test --all`` makes up more of them, for all classes, and asks whether credentials are
ignored. That everything which the document allows is accepted can't be asked: what a query means
isn't in its schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case

from backend.wsgi import application
from tests.people import make_role, sign_up
from tests.rest import MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("emptied")]

UNASKED = [schemathesis.checks.positive_data_acceptance]
# Each request once more without credentials, and with wrong ones.
AT_LENGTH = [schemathesis.checks.ignored_auth]
FIELDS = {
    "name": {"type": "String", "required": True},
    "stars": {"type": "Number"},
    "open": {"type": "Boolean"},
    "tags": {"type": "Array"},
    "day": {"type": "Date"},
    "owner": {"type": "Pointer", "targetClass": "_User"},
    "place": {"type": "GeoPoint"},
    "area": {"type": "Polygon"},
    "raw": {"type": "Bytes"},
    "picture": {"type": "File"},
    "friends": {"type": "Relation", "targetClass": "_User"},
}
# Random text is never a query.
WHERES = [
    {"name": "a"},
    {"stars": {"$gt": 1}, "name": {"$regex": "^a"}},
    {"$or": [{"open": True}, {"tags": {"$in": ["a", 1]}}]},
    {"owner": {"$inQuery": {"className": "_User", "where": {"username": "ann"}}}},
    {"place": {"$nearSphere": {"__type": "GeoPoint", "latitude": 1, "longitude": 1}}},
    {"day": {"$lt": {"__type": "Date", "iso": "2020-01-31T12:00:00.000Z"}}},
    {"name": {"$text": {"$search": {"$term": "a"}}}},
    {"unknown": {"$exists": False}},
]
ORDERS = ["name", "-stars,name", "createdAt", "owner.username", "$score"]
WORDS = ["name", "owner", "owner.username,name", "*", "createdAt,tags"]


def bounded(examples: int, *, borders: bool = True) -> Callable[[Any], Any]:
    """So many made-up requests for each operation, the same in every run, after its borders."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate) if borders else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


def document_of(caller: Api) -> Any:
    # It adds its own to the headers that it is given.
    headers = dict(caller.headers)
    return schemathesis.openapi.from_wsgi("/api/openapi.json", application, headers=headers)


@pytest.fixture
def world() -> Api:
    """A class with fields of many kinds, and an object in it; its caller is the master key."""
    master = Api(MASTER)
    assert master.post("/schemas/Project", {"fields": FIELDS}).status == 200
    master.make("Project", name="a", stars=1, open=True, tags=["a"])
    return master


@pytest.fixture
def for_master(world: Api) -> Any:
    return document_of(world)


@pytest.fixture
def editor(world: Api) -> Api:
    """A user with a role, who may read the class and create in it."""
    ann = sign_up("ann")
    make_role(world, "Editors", [ann])
    allowed = {action: {"role:Editors": True} for action in ("find", "get", "create")}
    world.put("/schemas/Project", {"classLevelPermissions": allowed})
    return ann


@pytest.fixture
def for_editor(editor: Api) -> Any:
    return document_of(editor)


def with_queries(case: Case) -> Case:
    """The case, with questions that mean something where it has random text for them."""
    query = case.query
    for name, sensible in (("where", WHERES), ("order", ORDERS), ("keys", WORDS)):
        if isinstance(query.get(name), str):
            chosen = sensible[len(query[name]) % len(sensible)]
            query[name] = chosen if isinstance(chosen, str) else json.dumps(chosen)
    return case


def check(case: Case, caller: Api, at_length: bool = False) -> None:
    """The request as it was made up, and the same with a query that means something."""
    unasked = UNASKED if at_length else UNASKED + AT_LENGTH
    if case.media_type == "multipart/form-data":
        # Every field of a form is text: a value of another type is a text like any other.
        unasked = [*unasked, schemathesis.checks.negative_data_rejection]
    case.call_and_validate(headers=caller.headers, excluded_checks=unasked)
    if {"where", "order", "keys"} & set(case.query or ()):
        with_queries(case).call_and_validate(
            headers=caller.headers,
            checks=[
                schemathesis.checks.not_a_server_error,
                schemathesis.checks.status_code_conformance,
                schemathesis.checks.content_type_conformance,
                schemathesis.checks.response_schema_conformance,
            ],
        )


whole_schema = schemathesis.pytest.from_fixture("for_master")
# Classes are all alike; Project has fields of every kind.
master_schema = whole_schema.exclude(path_regex="^/classes/(?!Project)")
other_classes = whole_schema.include(path_regex="^/classes/(?!Project)")
editor_schema = schemathesis.pytest.from_fixture("for_editor").include(
    path_regex="^/(classes|functions|users|sessions|batch)"
)


@master_schema.parametrize()
@bounded(3)
@pytest.mark.slow
def test_as_master(case: Case, world: Api) -> None:
    check(case, world)


@pytest.mark.slow
@editor_schema.parametrize()
@bounded(3)
def test_as_a_user_with_a_role(case: Case, editor: Api) -> None:
    check(case, editor, at_length=True)


@pytest.mark.slow
@other_classes.parametrize()
@bounded(1)
def test_other_classes_as_master(case: Case, world: Api) -> None:
    check(case, world)


@pytest.mark.slow
@whole_schema.parametrize()
@bounded(15, borders=False)
def test_as_master_at_length(case: Case, world: Api) -> None:
    check(case, world, at_length=True)
