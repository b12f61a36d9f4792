"""Several writes of server code as one."""

from __future__ import annotations

from typing import Any

import pytest

from backend.kernel.errors import ScriptFailed, TransactionConflict
from functions import Request, TriggerRequest, after_save, before_save, function, increment
from tests.rest import MASTER, Api
from tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("emptied")]


@pytest.fixture
def master() -> Api:
    return Api(MASTER)


def texts(api: Api, class_name: str = "Note") -> list[str]:
    return sorted(result["text"] for result in api.results(class_name))


def test_a_function_in_a_transaction_writes_all_or_nothing(master: Api) -> None:
    @function(transaction=True)
    def two(request: Request, fail: bool) -> str:
        request.objects("Note").create(text="a")
        request.objects("Note").create(text="b")
        if fail:
            raise ScriptFailed("No.")
        return "done"

    assert master.post("/functions/two", {"fail": True}).error == (400, 141)
    assert texts(master) == []
    assert master.post("/functions/two", {"fail": False}).json == {"result": "done"}
    assert texts(master) == ["a", "b"]


def test_a_part_of_a_function_is_a_transaction(master: Api) -> None:
    @function()
    def parts(request: Request) -> None:
        request.objects("Note").create(text="stays")
        try:
            with request.transaction():
                request.objects("Note").create(text="goes")
                raise ScriptFailed("No.")
        except ScriptFailed:
            pass

    assert master.post("/functions/parts").status == 200
    assert texts(master) == ["stays"]


def test_without_one_what_was_written_before_an_error_stays(master: Api) -> None:
    @function()
    def half(request: Request) -> None:
        request.objects("Note").create(text="a")
        raise ScriptFailed("No.")

    assert master.post("/functions/half").error == (400, 141)
    assert texts(master) == ["a"]


def test_triggers_are_inside_of_it_and_those_after_wait_for_its_end(master: Api) -> None:
    observed: list[str] = []

    @before_save("Note")
    def log_it(request: TriggerRequest) -> None:
        request.objects("Log").create(text=request.object["text"])

    @after_save("Note")
    def tell(request: TriggerRequest) -> None:
        observed.append(request.object["text"])

    @function(transaction=True)
    def save(request: Request, text: str) -> list[str]:
        request.objects("Note").create(text=text)
        during = list(observed)
        if text == "bad":
            raise ScriptFailed("No.")
        return during

    assert master.post("/functions/save", {"text": "good"}).json == {"result": []}
    assert observed == ["good"]
    assert master.post("/functions/save", {"text": "bad"}).error == (400, 141)
    assert observed == ["good"]
    assert texts(master) == texts(master, "Log") == ["good"]


def test_what_waits_for_the_commit_is_not_done_without_one(master: Api) -> None:
    done: list[str] = []

    @function(transaction=True)
    def later(request: Request, fail: bool) -> None:
        request.on_commit(lambda: done.append("x"))
        if fail:
            raise ScriptFailed("No.")

    master.post("/functions/later", {"fail": True})
    assert done == []
    master.post("/functions/later", {"fail": False})
    assert done == ["x"]


def test_a_function_that_lost_to_another_transaction_is_run_again(master: Api) -> None:
    attempts: list[int] = []

    @function(transaction=True)
    def unlucky(request: Request) -> int:
        attempts.append(1)
        request.objects("Note").create(text=str(len(attempts)))
        if len(attempts) < 3:
            raise TransactionConflict("Try again.")
        return len(attempts)

    assert master.post("/functions/unlucky").json == {"result": 3}
    assert texts(master) == ["3"]


def test_transactions_that_lock_each_other_all_end_well(master: Api) -> None:
    first, second = master.make("Account", n=0), master.make("Account", n=0)

    @function(transaction=True)
    def move(request: Request, a: str, b: str) -> None:
        request.objects("Account").update(a, n=increment(-1))
        request.objects("Account").update(b, n=increment(1))

    def mover(number: int) -> Any:
        pair = (first, second) if number % 2 else (second, first)
        return [
            Api(MASTER).post("/functions/move", {"a": pair[0], "b": pair[1]}).status
            for _ in range(4)
        ]

    statuses = at_once([lambda n=n: mover(n) for n in range(2)])
    assert {status for item in statuses for status in item} == {200}
    assert [item["n"] for item in master.results("Account")] == [0, 0]


def test_concurrent_saves_through_a_trigger_lose_nothing(master: Api) -> None:
    object_id = master.make("Counter", n=0, doubled=0)

    @before_save("Counter")
    def keep_double(request: TriggerRequest) -> None:
        request.object["doubled"] = request.object["n"] * 2

    def add() -> list[int]:
        body = {"n": {"__op": "Increment", "amount": 1}}
        path = f"/classes/Counter/{object_id}"
        return [Api(MASTER).put(path, body).status for _ in range(10)]

    assert {status for item in at_once([add] * 4) for status in item} == {200}
    (counter,) = master.results("Counter")
    assert (counter["n"], counter["doubled"]) == (40, 80)
