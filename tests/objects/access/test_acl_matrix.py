"""Access lists of objects: every caller, on every way, reads and writes what the list allows."""

from __future__ import annotations

import pytest

from backend.kernel.principal import MASTER
from objects import service
from tests.objects.access.tables import LISTS, OWNER_ID
from tests.objects.access.world import (
    CALLERS,
    CLIENT,
    OWNER,
    READ_ONLY_MASTER,
    Place,
    find,
    get,
    outcome,
)

pytestmark = pytest.mark.django_db

READ, WRITE = {"read": True}, {"write": True}
BOTH = {**READ, **WRITE}
ME = OWNER_ID

cases = pytest.mark.parametrize(("acl", "readers", "writers"), LISTS.values(), ids=LISTS)


@cases
def test_an_object_is_met_by_its_readers_on_every_way_and_by_no_other_caller(acl, readers, writers):
    place = Place(**({} if acl is None else {"ACL": acl}))
    for way in place.ways():
        assert {name for name, p in CALLERS.items() if way.meets(p)} == readers, way.name


@cases
def test_an_object_is_changed_and_deleted_by_its_writers_and_by_no_other_caller(
    acl, readers, writers
):
    for name, principal in CALLERS.items():
        doc = Place(**({} if acl is None else {"ACL": acl})).doc
        expected = "yes" if name in writers | {"master"} else "not found"
        if name == "reader":
            expected = "forbidden"
        for body in ({"name": "new"}, {"tags": {"__op": "AddUnique", "objects": [1]}}, {"new": 1}):
            assert outcome(lambda p=principal, b=body, d=doc: service.update(p, "Doc", d, b)) == (
                expected
            ), (name, body)
        assert outcome(lambda p=principal, d=doc: service.delete(p, "Doc", d)) == expected, name
        if expected != "yes":
            stored = get(MASTER, "Doc", doc)
            assert (stored["name"], stored["tags"], "new" in stored) == ("doc", ["t"], False)


def test_a_refused_write_tells_nothing_of_an_object_that_may_not_be_read():
    hidden = Place(ACL={}).doc
    for action in (
        lambda object_id: service.update(CLIENT, "Doc", object_id, {"name": "x"}),
        lambda object_id: service.delete(CLIENT, "Doc", object_id),
        lambda object_id: get(CLIENT, "Doc", object_id),
    ):
        assert outcome(lambda a=action: a(hidden)) == outcome(lambda a=action: a("missing000"))


def test_a_writer_may_give_the_object_away():
    doc = Place(ACL={ME: BOTH}).doc
    service.update(OWNER, "Doc", doc, {"ACL": {"role:Team": BOTH}})
    assert outcome(lambda: get(OWNER, "Doc", doc)) == "not found"
    assert [obj["objectId"] for obj in find(CALLERS["member"], "Doc")] == [doc]


def test_a_user_id_that_looks_like_a_role_or_like_everyone_opens_nothing():
    Place(ACL={"role:Team": BOTH})
    for user_id in ("role:Team", "*", "role"):
        principal = type(OWNER)(OWNER.authority, user_id=user_id)
        if user_id == "role":
            assert find(principal, "Doc") == []
    assert find(READ_ONLY_MASTER, "Doc") != []
