"""Which subscribers share the work of a change, how long rights hold, what triggers leave out."""

from __future__ import annotations

import pytest

from backend.kernel.principal import CLIENT, MASTER, READ_ONLY_MASTER, Authority, Principal
from functions import FindRequest, Pointer, ScriptFailed, before_find
from objects.service import classes
from tests.objects.access.tables import PUBLIC, SECRET
from tests.objects.access.world import CALLERS, MEMBER, OWNER, STRANGER, make, outcome, permit, user
from tests.realtime.access.live_subscriptions import access, stored

pytestmark = pytest.mark.django_db


def test_callers_of_an_open_class_differ_by_access_lists_alone():
    make("Doc")
    rights = {access(principal).rights for principal in CALLERS.values()}
    assert len(rights) == 1
    assert access(MASTER).key == access(READ_ONLY_MASTER).key
    assert access(MASTER).acl_ids is None
    assert access(OWNER).key != access(STRANGER).key
    assert access(OWNER).key == access(Principal(Authority.CLIENT, user_id=OWNER.user_id)).key


def test_pointer_permissions_tell_users_apart_and_nobody_else():
    make("Doc", owner=user(OWNER))
    permit("Doc", **PUBLIC | {"find": {"role:Team": True, "pointerFields": ["owner"]}})
    assert access(OWNER).rights != access(STRANGER).rights
    assert access(MEMBER).rights == access(MASTER).rights


def test_what_each_object_hides_by_itself_tells_users_apart():
    make("Doc", owner=user(OWNER), secret=1)
    permit("Doc", **PUBLIC, protectedFields={"*": SECRET, "userField:owner": []})
    assert access(OWNER).rights != access(STRANGER).rights
    permit("Doc", **PUBLIC, protectedFields={"*": SECRET})
    assert access(OWNER).rights == access(STRANGER).rights != access(MASTER).rights


def test_rights_hold_for_one_version_of_the_class():
    make("Doc", secret=1)
    before = access(OWNER)
    permit("Doc", **PUBLIC, protectedFields={"*": SECRET})
    after = access(OWNER)
    assert (before.version, before.rights) != (after.version, after.rights)
    assert after.version > before.version


def test_a_class_that_is_not_there_shows_nothing_until_it_is(settings):
    assert outcome(lambda: access(CLIENT, "Nowhere")) == "forbidden"
    assert access(MASTER, "Nowhere").version == 0
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CLIENT_CLASS_CREATION": True}
    missing = access(CLIENT, "Nowhere")
    assert (missing.version, missing.readable({"objectId": "a"})) == (0, False)
    classes.create(MASTER, "Nowhere", {"fields": {}})
    assert access(CLIENT, "Nowhere").version > 0


def test_what_a_trigger_hides_from_searches_is_not_shown_either():
    hidden, shown = stored(make("Doc", draft=True)), stored(make("Doc", draft=False))

    @before_find("Doc")
    def only_published(request: FindRequest) -> None:
        if not request.master:
            request.query.where(draft=False)

    assert not access(OWNER).readable(hidden)
    assert access(OWNER).readable(shown)
    assert access(MASTER).readable(hidden)


def test_a_trigger_decides_for_each_user():
    doc = stored(make("Doc", author=user(OWNER)))

    @before_find("Doc")
    def own(request: FindRequest) -> None:
        if request.user_id:
            request.query.where(author=Pointer("_User", request.user_id))

    assert access(OWNER).readable(doc)
    assert not access(STRANGER).readable(doc)


def test_a_trigger_that_refuses_a_search_refuses_the_subscription():
    make("Doc")

    @before_find("Doc")
    def refuse(request: FindRequest) -> None:
        raise ScriptFailed("Not today.", code=4711)

    with pytest.raises(ScriptFailed, match="Not today") as refused:
        access(OWNER)
    assert refused.value.code == 4711


@pytest.mark.parametrize("gives", ["results", "sub-query"])
def test_what_a_trigger_leaves_out_is_never_guessed(gives):
    make("Doc")

    @before_find("Doc")
    def answer(request: FindRequest) -> None:
        if gives == "results":
            request.results = []
        else:
            request.query.where(to={"$inQuery": {"className": "Ref", "where": {}}})

    assert outcome(lambda: access(OWNER)) == "forbidden"
