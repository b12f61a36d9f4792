"""The client's context reaches every webhook and trigger of a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions import FindRequest, TriggerRequest, after_save, before_find, before_save
from tests.functions.webhooks.receiver import Receiver
from tests.people import PASSWORD, sign_up
from tests.rest import CLIENT, MASTER, Api

pytestmark = pytest.mark.django_db(transaction=True)

CONTEXT = {"key": "value"}
master = Api(MASTER)


def with_context(context: Any = CONTEXT) -> Api:
    return Api({**MASTER, "X-Svc-Cloud-Context": json.dumps(context)})


def declare(receiver: Receiver, class_name: str, *triggers: str) -> None:
    url = receiver.on("/", raw=b"")
    for trigger in triggers:
        hook = {"className": class_name, "triggerName": trigger, "url": url}
        assert master.post("/hooks/triggers", hook).json == hook


def contexts(receiver: Receiver) -> list[tuple[str, Any]]:
    return [(item.json["triggerName"], item.json["context"]) for item in receiver.received]


def test_it_reaches_the_webhooks_of_writes_and_searches(receiver: Receiver) -> None:
    declare(receiver, "Game", "beforeSave", "afterSave", "beforeDelete", "afterDelete")
    declare(receiver, "Game", "beforeFind", "afterFind")
    api = with_context()
    game = api.make("Game")
    api.put(f"/classes/Game/{game}", {"n": 1})
    api.get("/classes/Game")
    api.get(f"/classes/Game/{game}")
    api.delete(f"/classes/Game/{game}")
    called = ["beforeSave", "afterSave"] * 2 + ["beforeFind", "afterFind"] * 2
    assert contexts(receiver) == [
        (name, CONTEXT) for name in [*called, "beforeDelete", "afterDelete"]
    ]


def test_it_reaches_the_webhooks_of_included_objects(receiver: Receiver) -> None:
    player = master.make("Player")
    pointer = {"__type": "Pointer", "className": "Player", "objectId": player}
    master.make("Game", player=pointer)
    declare(receiver, "Player", "beforeFind")
    with_context().get("/classes/Game", include="player")
    assert contexts(receiver) == [("beforeFind", CONTEXT)]


def test_it_reaches_the_webhooks_of_logins(receiver: Receiver) -> None:
    sign_up("ann")
    declare(receiver, "_User", "beforeLogin", "afterLogin")
    api = Api({**CLIENT, "X-Svc-Cloud-Context": json.dumps(CONTEXT)})
    assert api.post("/login", {"username": "ann", "password": PASSWORD}).status == 200
    body = {"username": "ann", "password": PASSWORD, "_method": "GET", "_context": CONTEXT}
    assert Api(CLIENT).post("/login", body).status == 200
    assert contexts(receiver) == [("beforeLogin", CONTEXT), ("afterLogin", CONTEXT)] * 2


def test_it_reaches_functions(receiver: Receiver) -> None:
    url = receiver.on("/", raw=b"")
    master.post("/hooks/functions", {"functionName": "greet", "url": url})
    with_context().post("/functions/greet")
    master.post("/functions/greet", {"_context": CONTEXT, "a": 1})
    assert [item.json["context"] for item in receiver.received] == [CONTEXT, CONTEXT]
    assert receiver.received[1].json["params"] == {"a": 1}


def test_that_of_a_batch_is_that_of_its_requests_unless_they_have_one(receiver: Receiver) -> None:
    declare(receiver, "Game", "beforeSave", "afterSave")
    path = {"method": "POST", "path": "/api/classes/Game"}
    requests = [
        {**path, "body": {"n": 1}},
        {**path, "body": {"n": 2, "_context": {"inner": 1}}},
        {**path, "body": {"n": 3, "_context": 5}},
        {**path, "body": {"n": 4}},
    ]
    answers = master.post("/batch", {"requests": requests, "_context": {"outer": 1}}).json
    assert [*answers[2]] == ["error"]
    assert answers[2]["error"]["code"] == 107
    outer, inner = {"outer": 1}, {"inner": 1}
    assert [context for _, context in contexts(receiver)] == [
        *(outer,) * 2,
        *(inner,) * 2,
        outer,
        outer,
    ]
    assert not any("_context" in game for game in master.results("Game"))


def test_each_request_of_a_transaction_keeps_its_context_until_after_the_commit() -> None:
    seen: list[Any] = []

    @after_save("Game")
    def look(request: TriggerRequest) -> None:
        seen.append((request.object["n"], request.context))

    path = {"method": "POST", "path": "/api/classes/Game"}
    requests = [{**path, "body": {"n": n, "_context": {"inner": n}}} for n in range(2)]
    reply = master.post("/batch", {"requests": requests, "transaction": True})
    assert reply.status == 200
    assert seen == [(0, {"inner": 0}), (1, {"inner": 1})]


def test_in_a_class_without_triggers_it_is_no_field_either() -> None:
    path = {"method": "POST", "path": "/api/classes/Game"}
    requests = [{**path, "body": {"n": n, "_context": {"inner": n}}} for n in range(2)]
    answers = master.post("/batch", {"requests": requests}).json
    assert ["success" in answer for answer in answers] == [True, True]
    assert sorted(game["n"] for game in master.results("Game")) == [0, 1]


def test_later_triggers_see_what_earlier_ones_put_there(receiver: Receiver) -> None:
    seen: list[Any] = []

    @before_save("Game")
    def first(request: TriggerRequest) -> None:
        request.context["before"] = True

    @after_save("Game")
    def last(request: TriggerRequest) -> None:
        seen.append(dict(request.context))

    @before_find("Game")
    def narrow(request: FindRequest) -> None:
        request.context["found"] = True

    declare(receiver, "Game", "afterSave", "afterFind")
    with_context().make("Game")
    with_context().get("/classes/Game")
    assert seen == [{**CONTEXT, "before": True}]
    assert contexts(receiver) == [
        ("afterSave", {**CONTEXT, "before": True}),
        ("afterFind", {**CONTEXT, "found": True}),
    ]


@pytest.mark.parametrize("value", ["key", "1", "[1]", "null", '"text"', "{bad", "", "{}x"])
def test_anything_but_an_object_is_107(receiver: Receiver, value: str) -> None:
    declare(receiver, "Game", "beforeSave", "afterSave")
    refused = {"code": 107, "error": "Invalid object for context."}
    api = Api({**MASTER, "X-Parse-Cloud-Context": value})
    assert api.post("/classes/Game", {"a": 1}).json == refused
    assert master.post("/classes/Game", {"a": 1, "_context": value}).json == refused
    assert receiver.received == []
