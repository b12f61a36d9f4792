"""Triggers around live queries: who may connect, who may subscribe to what, what is sent."""

from __future__ import annotations

import time
from typing import Any

import pytest
from structlog.contextvars import get_contextvars

from backend.kernel.errors import (
    InvalidKeyName,
    OperationForbidden,
    ScriptFailed,
    Timeout,
    ValidationFailed,
)
from functions import (
    ConnectRequest,
    LiveEventRequest,
    SubscribeRequest,
    after_event,
    before_connect,
    before_save,
    before_subscribe,
)
from objects.core.query.parser import check_path, parse_where
from objects.core.query.tree import Query
from realtime.livequery import trigger_calls
from realtime.livequery.access import current_table
from realtime.livequery.trigger_calls import AuthorizedQuery, Counts, SubscriptionQuery
from tests.objects.access.tables import PUBLIC, SECRET
from tests.objects.access.world import CALLERS, CLIENT, MASTER, OWNER, make, permit, user

pytestmark = pytest.mark.django_db

COUNTS = Counts(clients=3, subscriptions=7)
OBJECT = {"objectId": "abcdefghij", "createdAt": "2026-01-01T00:00:00.000Z", "name": "n"}


def ask(
    principal: Any = OWNER, where: Any = None, keys: Any = None, watch: Any = None
) -> AuthorizedQuery:
    paths = None if keys is None else frozenset(check_path(key) for key in keys)
    watched = None if watch is None else tuple(map(check_path, watch))
    request = SubscriptionQuery("Doc", parse_where(where or {}), paths, watched, where or {})
    return trigger_calls.subscribe(principal, request, COUNTS)


def tell(
    principal: Any = OWNER, event: str = "update", original: Any = None, **fields: Any
) -> tuple[Any, Any] | None:
    access = ask(principal).access
    return trigger_calls.after_event(
        principal, access, event, {**OBJECT, **fields}, original, COUNTS
    )


def test_before_connect_rejects_a_client_with_code_and_text():
    calls: list[Any] = []

    @before_connect()
    def check(request: ConnectRequest) -> None:
        calls.append((request.event, request.clients, request.subscriptions, request.user_id))
        calls.append((request.address, dict(request.headers)))
        calls.append((request.request_id, get_contextvars()["request_id"]))
        if request.user_id is None:
            raise ScriptFailed("Members only.", code=4711)

    headers = {"user-agent": "x", "x-svc-session-token": "r:1", "cookie": "a=b"}
    with trigger_calls.client_context("10.1.2.3", headers, request_id="connection-1"):
        trigger_calls.connect(OWNER, COUNTS)
        with pytest.raises(ScriptFailed, match=r"Members only\.") as refused:
            trigger_calls.connect(CLIENT, COUNTS)
    assert refused.value.code == 4711
    assert calls[:3] == [
        ("connect", 3, 7, OWNER.user_id),
        ("10.1.2.3", {"user-agent": "x"}),
        ("connection-1", "connection-1"),
    ]


def test_requirements_are_checked_before_the_trigger():
    @before_connect(require_user=True)
    def members(request: ConnectRequest) -> None:
        pass

    @before_subscribe("Doc", require_any_role=["Team"])
    def team(request: SubscribeRequest) -> None:
        pass

    with pytest.raises(ValidationFailed):
        trigger_calls.connect(CLIENT, COUNTS)
    make("Doc")
    with pytest.raises(ValidationFailed):
        ask(OWNER)
    assert ask(CALLERS["member"]).effective.where == parse_where({})
    assert ask(MASTER)


def is_match(query: Query, **fields: Any) -> bool:
    from objects.core.query.predicate import matches

    return matches(query, {**OBJECT, **fields})


def test_a_trigger_narrows_a_subscription_and_replaces_its_keys_and_watch():
    make("Doc")

    @before_subscribe("Doc")
    def narrow(request: SubscribeRequest) -> None:
        assert (request.event, request.class_name) == ("subscribe", "Doc")
        assert request.watch == ("a",)
        assert request.options.raw_where == {"name": "n"}
        request.query.where(open=True)
        request.query.keys("name", "open").watch("open")

    authorized = ask(where={"name": "n"}, keys=["name"], watch=("a",))
    assert is_match(authorized.effective.where, open=True)
    assert not is_match(authorized.effective.where, open=False)
    assert not is_match(authorized.effective.where, open=True, name="other")
    assert authorized.effective.keys == {("name",), ("open",)}
    assert authorized.effective.watch == (("open",),)
    assert authorized.requested.watch == (("a",),)


def test_a_subscription_without_changes_by_triggers_keeps_its_query():
    make("Doc")
    alone = ask(where={"name": "n"}, keys=["name"], watch=("name",))
    assert alone.effective is alone.requested

    @before_subscribe("*")
    def look(request: SubscribeRequest) -> None:
        pass

    answer = ask(where={"name": "n"}, keys=["name"], watch=("name",))
    assert answer.effective == alone.effective


def test_a_trigger_can_remove_watch():
    make("Doc")

    @before_subscribe("Doc")
    def all_changes(request: SubscribeRequest) -> None:
        request.query.watch()

    assert ask(watch=("name",)).effective.watch is None


def test_a_trigger_that_watches_an_invalid_field_is_an_error():
    make("Doc")

    @before_subscribe("Doc")
    def watch(request: SubscribeRequest) -> None:
        request.query.watch("na\u200bme")

    with pytest.raises(InvalidKeyName):
        ask()


def test_before_subscribe_rejects_a_subscription_with_code_and_text():
    make("Doc")

    @before_subscribe("Doc")
    def refuse(request: SubscribeRequest) -> None:
        raise ScriptFailed("Not these.", code=4712)

    with pytest.raises(ScriptFailed, match="Not these") as refused:
        ask(MASTER)
    assert refused.value.code == 4712


def test_triggers_may_query_fields_that_the_client_may_not():
    """What a trigger adds isn't the client's question, and is never shown."""
    make("Doc", secret=1)
    permit("Doc", **PUBLIC, protectedFields={"*": SECRET})

    @before_subscribe("Doc")
    def narrow(request: SubscribeRequest) -> None:
        request.query.where(secret=1)

    assert is_match(ask(OWNER).effective.where, secret=1)
    with pytest.raises(OperationForbidden):
        ask(OWNER, where={"secret": 1})


def test_a_client_without_rights_is_rejected_before_any_trigger():
    make("Doc")
    permit("Doc", **PUBLIC | {"find": {}})
    called = []

    @before_subscribe("Doc")
    def note(request: SubscribeRequest) -> None:
        called.append(request)

    with pytest.raises(OperationForbidden):
        ask(OWNER)
    assert called == []


def test_the_query_of_a_trigger_must_be_decidable_by_one_object():
    from backend.kernel.errors import InvalidQuery

    make("Doc")

    @before_subscribe("Doc")
    def narrow(request: SubscribeRequest) -> None:
        request.query.where(to={"$inQuery": {"className": "Ref", "where": {}}})

    with pytest.raises(InvalidQuery):
        ask()


def test_a_subscription_is_renewed_without_running_its_trigger_again():
    make("Doc", owner=user(OWNER))
    calls = []

    @before_subscribe("Doc")
    def narrow(request: SubscribeRequest) -> None:
        calls.append(request)
        request.query.where(open=True)

    authorized = ask(OWNER)
    permit("Doc", **PUBLIC | {"find": {"pointerFields": ["owner"]}})
    renewed = trigger_calls.renew(OWNER, authorized, current_table("Doc"))
    assert len(calls) == 1
    assert renewed.effective == authorized.effective
    assert renewed.access.version > authorized.access.version
    assert not renewed.access.can_read({**OBJECT})
    permit("Doc", **PUBLIC | {"find": {}})
    with pytest.raises(OperationForbidden):
        trigger_calls.renew(OWNER, renewed, current_table("Doc"))


# -- Events ---------------------------------------------------------------------------------------


def test_after_event_can_change_the_objects_for_each_subscriber():
    make("Doc")

    @after_event("Doc")
    def greet(request: LiveEventRequest) -> None:
        assert (request.event, request.clients, request.subscriptions) == ("enter", 3, 7)
        request.object["for"] = request.user_id
        request.object.setdefault("list", []).append(1)
        assert request.original is not None
        request.original["was"] = True

    listed = {"deep": {"list": [1]}, "list": [0]}
    original = {**OBJECT, "name": "old"}
    for principal in (OWNER, CALLERS["stranger"]):
        calls = tell(principal, "enter", original, **listed)
        assert calls is not None
        assert calls[0]["for"] == principal.user_id
        assert calls[0]["list"] == [0, 1], "nothing of what another subscriber's trigger did"
        assert calls[1] == {**original, "was": True}
    assert listed == {"deep": {"list": [1]}, "list": [0]}
    assert original == {**OBJECT, "name": "old"}


def test_after_event_can_withhold_an_event():
    make("Doc")

    @after_event("Doc")
    def only_owner(request: LiveEventRequest) -> None:
        request.send_event = request.user_id == OWNER.user_id

    assert tell(OWNER) is not None
    assert tell(CALLERS["stranger"]) is None


def test_after_event_cannot_change_the_id_and_the_times():
    make("Doc")

    @after_event("Doc")
    def forge(request: LiveEventRequest) -> None:
        request.object["objectId"] = "somebodyel"
        del request.object["createdAt"]

    notification = tell()
    assert notification is not None
    assert notification[0] == OBJECT


def test_protected_fields_are_removed_from_the_result_of_a_trigger():
    """The trigger itself sees the whole object."""
    make("Doc", secret=1, owner=user(OWNER))
    permit("Doc", **PUBLIC, protectedFields={"*": SECRET, "userField:owner": []})
    observed = []

    @after_event("Doc")
    def look(request: LiveEventRequest) -> None:
        observed.append((request.object.get("secret"), request.original.get("secret")))
        request.object["owner"] = user(CALLERS["stranger"])
        request.object["secret"] = 3

    fields = {"secret": 2, "owner": user(OWNER)}
    original = {**OBJECT, "secret": 1}
    notification = tell(CALLERS["stranger"], "update", original, **fields)
    assert notification is not None
    assert observed == [(2, 1)]
    assert "secret" not in notification[0], "whom the stored object names, not the changed one"
    assert "secret" not in notification[1]
    notification = tell(OWNER, "update", original, **fields)
    assert notification is not None
    assert notification[0]["secret"] == 3
    assert "secret" not in notification[1], "the former object named nobody"


def test_the_error_of_a_failed_or_slow_trigger_has_no_details():
    make("Doc")

    @after_event("Doc", time_limit=0.5)
    def slow_or_broken(request: LiveEventRequest) -> None:
        if request.object["name"] == "slow":
            end = time.monotonic() + 30
            while time.monotonic() < end:
                pass
        raise RuntimeError("internal detail")

    with pytest.raises(ScriptFailed) as failed:
        tell()
    assert "internal" not in failed.value.message
    with pytest.raises(Timeout):
        tell(name="slow")


# -- Registering ----------------------------------------------------------------------------------


def test_only_existing_triggers_can_be_registered():
    for class_name in ("@File", "@Config", "@Connect", "_Session", "_JobStatus"):
        with pytest.raises(ValueError, match="has no trigger"):
            before_subscribe(class_name)
        with pytest.raises(ValueError, match="has no trigger"):
            after_event(class_name)
    with pytest.raises(ValueError, match="has no trigger"):
        before_save("@Connect")


def test_the_trigger_of_a_class_replaces_that_of_all_classes():
    make("Doc")
    order = []

    @after_event("*")
    def every(request: LiveEventRequest) -> None:
        order.append("every")

    @after_event("Doc")
    def own(request: LiveEventRequest) -> None:
        order.append("own")

    assert trigger_calls.has_event_triggers("Doc")
    tell()
    assert order == ["own", "every"]
