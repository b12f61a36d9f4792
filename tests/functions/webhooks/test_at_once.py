"""A webhook that one process declares or removes holds in the others with their next request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from functions.webhooks import class_hooks
from objects import triggers
from tests.functions.webhooks.receiver import Receiver
from tests.other_process import OtherProcess
from tests.people import log_in, sign_up
from tests.rest import MASTER, Api, Reply
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

master = Api(MASTER)


@pytest.fixture
def game() -> str:
    """An object whose class this process has in memory."""
    game = master.make("Game", n=1)
    assert master.results("Game")
    return game


CASES: dict[str, tuple[str, str, Callable[[str], Reply]]] = {
    "create": ("Game", "beforeSave", lambda game: master.post("/classes/Game", {"n": 2})),
    "update": ("Game", "beforeSave", lambda game: master.put(f"/classes/Game/{game}", {"n": 2})),
    "find": ("Game", "beforeFind", lambda game: master.get("/classes/Game")),
    "count": ("Game", "beforeFind", lambda game: master.get("/classes/Game", count=1, limit=0)),
    "get": ("Game", "beforeFind", lambda game: master.get(f"/classes/Game/{game}")),
    "found": ("Game", "afterFind", lambda game: master.get("/classes/Game")),
    "new class": ("New", "beforeSave", lambda game: master.post("/classes/New", {})),
    "log in": ("_User", "beforeLogin", lambda game: log_in("ann")),
    "config": ("@Config", "beforeSave", lambda game: master.put("/config", {"params": {"a": 1}})),
    "file": ("@File", "beforeSave", lambda game: upload()),
}


def upload() -> Reply:
    return master.call("POST", "/files/a.txt", raw=b"a", content_type="text/plain")


@pytest.mark.parametrize("case", CASES)
def test_a_webhook_holds_at_once(
    other: OtherProcess, receiver: Receiver, game: str, case: str
) -> None:
    class_name, trigger, action = CASES[case]
    sign_up("ann")
    hook = {
        "className": class_name,
        "triggerName": trigger,
        "url": receiver.on("/", {"error": "refused"}),
    }
    other.do("POST", "/hooks/triggers", hook)
    assert action(game).json == {"code": 141, "error": "refused"}
    count = len(receiver.received)
    other.do("DELETE", f"/hooks/triggers/{class_name}/{trigger}")
    assert action(game).status < 300
    assert len(receiver.received) == count


def test_a_delete_asks_at_once(other: OtherProcess, receiver: Receiver, game: str) -> None:
    url = receiver.on("/", {"error": "refused"})
    hook = {"className": "Game", "triggerName": "beforeDelete", "url": url}
    other.do("POST", "/hooks/triggers", hook)
    assert master.delete(f"/classes/Game/{game}").error == (400, 141)


def test_webhooks_stay_with_a_class_that_changes(receiver: Receiver, game: str) -> None:
    url = receiver.on("/", {"error": "refused"})
    master.post("/hooks/triggers", {"className": "Game", "triggerName": "beforeSave", "url": url})
    master.put("/schemas/Game", {"fields": {"more": {"type": "String"}}})
    assert master.post("/classes/Game", {"more": "x"}).error == (400, 141)
    master.delete(f"/classes/Game/{game}")
    assert master.delete("/schemas/Game").status == 200
    assert master.post("/classes/Game", {"n": 1}).error == (400, 141)


def test_a_class_and_its_webhook_made_at_the_same_moment_find_each_other(
    receiver: Receiver,
) -> None:
    url = receiver.on("/", {"error": "refused"})
    for number in range(10):
        name = f"Race{number}"
        hook = {"className": name, "triggerName": "beforeSave", "url": url}
        replies = at_once(
            [
                lambda hook=hook: Api(MASTER).post("/hooks/triggers", hook),
                lambda name=name: Api(MASTER).post(f"/schemas/{name}", {}),
            ]
        )
        assert [reply.status for reply in replies] == [200, 200]
        assert master.post(f"/classes/{name}", {}).error == (400, 141)


def test_of_two_who_declare_the_same_one_does(receiver: Receiver) -> None:
    hook = {"className": "Game", "triggerName": "beforeSave", "url": receiver.url}
    replies = at_once([lambda: Api(MASTER).post("/hooks/triggers", hook)] * 4)
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400]
    assert master.get("/hooks/triggers").json == [hook]


def test_a_class_without_webhooks_causes_no_call(game: str, django_assert_num_queries: Any) -> None:
    assert class_hooks.handlers("Game", False) == {}
    with django_assert_num_queries(0):
        assert not triggers.has("Game", "before_save", "saved", "after_save")
