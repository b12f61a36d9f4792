"""Access lists over REST: users with real sessions and roles get what the tables say."""

from __future__ import annotations

from itertools import product

import pytest

from tests.objects.access.tables import LISTS, MASTERS, MISSING, NAMES, NO, YES
from tests.objects.access.transports import TRANSPORTS, batched, directly, overridden
from tests.objects.access.world import Place, outcome_over_rest
from tests.rest import APPLICATION, Api

cases = pytest.mark.parametrize(("acl", "readers", "writers"), LISTS.values(), ids=LISTS)


def place(acl):
    return Place(**({} if acl is None else {"ACL": acl}))


@cases
def test_an_object_is_met_by_its_readers_on_every_way_and_by_no_other_caller(
    people, acl, readers, writers
):
    for way in place(acl).ways():
        for name in NAMES:
            assert way.meets_over_rest(people[name]) == (name in readers), (name, way.name)


@pytest.mark.parametrize("acl", ["a role's", "empty", "a user's to write"])
@pytest.mark.parametrize("send", [overridden, batched])
def test_batches_and_overridden_methods_meet_it_no_more(people, acl, send):
    expected, readers, _ = LISTS[acl]
    for way in place(expected).ways():
        for name in NAMES:
            assert way.meets_over_rest(people[name], send) == (name in readers), (name, way.name)


@cases
def test_an_object_is_changed_and_deleted_by_its_writers_and_by_no_other_caller(
    people, acl, readers, writers
):
    for send, name in product(TRANSPORTS, NAMES):
        path = f"/classes/Doc/{place(acl).doc}"
        expected = YES if name in writers or name == "master" else MISSING
        if name == "reader":
            expected = NO
        for body in ({"name": "new"}, {"tags": {"__op": "AddUnique", "objects": [1]}}, {"new": 1}):
            assert outcome_over_rest(send(people[name], "PUT", path, body)) == expected, (
                name,
                body,
            )
        before = people["master"].get(path).json
        assert outcome_over_rest(send(people[name], "DELETE", path, None)) == expected, name
        if expected != YES:
            assert people["master"].get(path).json == before
            assert (before["name"], before["tags"], "new" in before) == ("doc", ["t"], False)


def test_pipelines_and_distinct_values_are_for_the_master_keys(people, send):
    place(None)
    for path, params in (
        ("/aggregate/Doc", {"distinct": "name"}),
        ("/aggregate/Doc", {"pipeline": [{"$match": {"name": "doc"}}]}),
    ):
        for name in NAMES:
            reply = send(people[name], "GET", path, params)
            assert outcome_over_rest(reply) == (YES if name in MASTERS else NO), name


def test_the_application_id_alone_opens_nothing(people):
    application = Api({**APPLICATION, "X-Svc-Session-Token": people["owner"].token})
    doc = place(None).doc
    for method, path, body in (
        ("GET", "/classes/Doc", None),
        ("GET", f"/classes/Doc/{doc}", None),
        ("POST", "/classes/Doc", {}),
        ("PUT", f"/classes/Doc/{doc}", {"name": "x"}),
        ("DELETE", f"/classes/Doc/{doc}", None),
        ("GET", "/users/me", None),
        ("GET", "/aggregate/Doc", {"distinct": "name"}),
        ("POST", "/batch", {"requests": []}),
    ):
        reply = directly(application, method, path, body)
        assert reply.error in ((403, 262), (403, 119)), (method, path)
