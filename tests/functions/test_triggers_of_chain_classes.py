"""Triggers of the chain's classes are called, or refused when they are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from functions import (
    TriggerRequest,
    after_delete,
    after_event,
    after_find,
    after_save,
    before_delete,
    before_find,
    before_save,
    before_subscribe,
)
from functions.runtime.registry import registry
from functions.webhooks.models import Hook
from objects.triggers import NeverCalled
from tests.rest import Api

URL = "https://hooks.example.org/path"
HASH = "0x" + "ab" * 32
ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
REFUSED = ("beforeSave", "afterSave", "beforeDelete", "afterDelete")
INSTEAD = ("/ws", "live query", "chain_outbox")


def nothing(request: Any) -> None: ...


@pytest.mark.parametrize(
    "declare",
    [
        before_save,
        after_save,
        before_delete,
        after_delete,
        lambda name: after_save(name, background=True),
        lambda name: after_delete(name, in_transaction=True),
    ],
)
def test_a_trigger_that_no_event_would_call_is_refused(declare: Callable[[str], Any]) -> None:
    before = dict(registry.triggers)
    with pytest.raises(NeverCalled) as raised:
        declare("ContractEvent")(nothing)
    for way in INSTEAD:
        assert way in str(raised.value)
    assert registry.triggers == before


@pytest.mark.parametrize("options", [{}, {"background": True}, {"in_transaction": True}])
def test_a_trigger_after_saving_transactions_is_refused(options: dict[str, Any]) -> None:
    """No change of a status would call it."""
    with pytest.raises(NeverCalled, match="live query"):
        after_save("Transaction", **options)(nothing)


def test_a_webhook_after_saving_transactions_is_refused(master: Api) -> None:
    body = {"className": "Transaction", "triggerName": "afterSave", "url": URL}
    refused = master.post("/hooks/triggers", body)
    assert refused.error == (400, 143)
    assert "live query" in refused.json["error"]


@pytest.mark.parametrize("declare", [before_find, after_find, before_subscribe, after_event])
def test_triggers_of_events_that_are_called_may_be_declared(
    declare: Callable[[str], Any],
) -> None:
    declare("ContractEvent")(nothing)
    assert (declare.__name__, "ContractEvent") in registry.triggers


@pytest.mark.parametrize("trigger", REFUSED)
def test_a_webhook_that_no_event_would_call_is_refused(master: Api, trigger: str) -> None:
    body = {"className": "ContractEvent", "triggerName": trigger, "url": URL}
    path = f"/hooks/triggers/ContractEvent/{trigger}"
    # One of an earlier version.
    for existing in (False, True):
        if existing:
            Hook.objects.create(class_name="ContractEvent", trigger_name=trigger, url=URL)
        for reply in (master.post("/hooks/triggers", body), master.put(path, {"url": URL + "/2"})):
            assert reply.error == (400, 143)
            for way in INSTEAD:
                assert way in reply.json["error"]
    assert [hook.url for hook in Hook.objects.all()] == [URL]
    assert master.put(path, {"__op": "Delete"}).status == 200
    assert not Hook.objects.exists()


@pytest.mark.parametrize("class_name", ["Blockchain", "SmartContract", "Transaction", "Identity"])
@pytest.mark.parametrize("trigger", REFUSED)
def test_webhooks_of_classes_that_are_written_over_rest_may_be_declared(
    master: Api, class_name: str, trigger: str
) -> None:
    if (class_name, trigger) != ("Transaction", "afterSave"):
        body = {"className": class_name, "triggerName": trigger, "url": URL}
        assert master.post("/hooks/triggers", body).status == 200


def test_triggers_of_classes_that_are_written_over_rest_are_called(master: Api) -> None:
    called: list[tuple[str, str]] = []
    written: dict[str, dict[str, Any]] = {
        "Blockchain": {"networkId": 5},
        "SmartContract": {"name": "Gem", "address": ADDRESS, "networkId": 5},
        "Transaction": {"hash": HASH, "networkId": 5},
        "Identity": {"walletAddress": ADDRESS},
    }

    def noting(event: str, class_name: str) -> Callable[[TriggerRequest], None]:
        return lambda request: called.append((event, class_name))

    for class_name in written:
        for declare in (before_save, before_delete):
            declare(class_name)(noting(declare.__name__, class_name))
        if class_name != "Transaction":
            after_save(class_name, in_transaction=True)(noting("saved", class_name))
    for class_name, fields in written.items():
        made = master.make(class_name, **fields)
        saved = [] if class_name == "Transaction" else [("saved", class_name)]
        assert called == [("before_save", class_name), *saved]
        assert master.delete(f"/classes/{class_name}/{made}").status == 200
        assert called.pop() == ("before_delete", class_name)
        called.clear()


def test_triggers_of_every_class_are_called_where_those_of_the_class_may_be_declared(
    master: Api,
) -> None:
    called: list[str] = []
    written: dict[str, dict[str, Any]] = {
        "Identity": {"walletAddress": ADDRESS},
        "Transaction": {"hash": HASH, "networkId": 5},
        "ContractEvent": {"eventName": "Transfer"},
    }
    for declare in (before_save, before_delete):
        declare("*")(lambda request, name=declare.__name__: called.append(name))
    after_save("*", in_transaction=True)(lambda request: called.append("saved"))
    expected = {
        "Identity": ["before_save", "saved", "before_delete"],
        "Transaction": ["before_save", "before_delete"],
        "ContractEvent": [],
    }
    for class_name, fields in written.items():
        made = master.make(class_name, **fields)
        master.delete(f"/classes/{class_name}/{made}")
        assert called == expected[class_name], class_name
        called.clear()
