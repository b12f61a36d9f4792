"""Calls of functions with an id are run once (docs/idempotency.md)."""

from __future__ import annotations

from functools import partial

import pytest

from functions import Request, ServiceError, function
from objects.idempotency.models import KeptAnswer
from tests.rest import APPLICATION, MASTER, Api
from tests.threads import at_once

HEADERS = {**APPLICATION, "X-Svc-Request-Id": "an-id-of-its-own"}


@pytest.fixture
def game(master):
    return master.make("Game", score=0)


def count(request: Request, game: str) -> None:
    request.objects.as_master("Game").update(game, {"score": {"__op": "Increment", "amount": 1}})


def score(game: str) -> int:
    number: int = Api(MASTER).get(f"/classes/Game/{game}").json["score"]
    return number


def call(name: str, game: str, **headers: str):
    return Api({**HEADERS, **headers}).post(f"/functions/{name}", {"game": game})


@pytest.mark.parametrize("together", [True, False])
def test_a_repeated_call_gets_the_first_result(game, together):
    @function(transaction=together)
    def play(request: Request, game: str) -> int:
        count(request, game)
        return score(game)

    replies = [call("play", game) for _ in range(3)]
    assert [reply.json for reply in replies] == [{"result": 1}] * 3
    assert [reply.headers.get("Idempotent-Replayed") for reply in replies] == [None, "true", "true"]
    assert score(game) == 1


def test_a_failure_is_kept_because_something_may_have_been_done_before(game):
    @function()
    def play(request: Request, game: str) -> None:
        count(request, game)
        raise ServiceError("The card was refused.", code=142)

    for _ in range(2):
        reply = call("play", game)
        assert reply.error == (400, 142)
        assert reply.json["error"] == "The card was refused."
    assert score(game) == 1


def test_a_mistake_in_a_function_is_kept_too(game):
    @function()
    def play(request: Request, game: str) -> None:
        count(request, game)
        raise RuntimeError("secret")

    first, second = (call("play", game) for _ in range(2))
    assert first.error == (400, 141)
    assert first.json == second.json
    assert score(game) == 1


def test_a_failure_that_undid_everything_is_not_kept(game):
    refused = [True]

    @function(transaction=True)
    def play(request: Request, game: str) -> str:
        count(request, game)
        if refused:
            raise ServiceError("Not now.", code=142)
        return "done"

    assert call("play", game).error == (400, 142)
    assert score(game) == 0
    refused.clear()
    assert call("play", game).json == {"result": "done"}
    assert call("play", game).json == {"result": "done"}
    assert score(game) == 1


@pytest.mark.parametrize("code", [1, 124, 251])
def test_what_asks_for_another_try_is_not_kept(game, code):
    from backend.kernel.errors import ServiceUnavailable, Timeout, TransactionConflict

    kinds = {1: ServiceUnavailable, 124: Timeout, 251: TransactionConflict}

    @function()
    def play(request: Request, game: str) -> None:
        count(request, game)
        raise kinds[code]("Try again.")

    for _ in range(2):
        assert call("play", game).json["code"] == code
    assert score(game) == 2
    assert not KeptAnswer.objects.exists()


def test_parameters_are_part_of_what_is_asked(game):
    @function()
    def play(request: Request, game: str, note: str = "") -> str:
        return note

    api = Api(HEADERS)
    assert api.post("/functions/play", {"game": game, "note": "a"}).json == {"result": "a"}
    assert api.post("/functions/play", {"game": game, "note": "b"}).error == (400, 159)
    assert api.post("/functions/play?note=c", {"game": game, "note": "a"}).error == (400, 159)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("together", [True, False])
def test_calls_at_the_same_moment_are_one(together):
    game = Api(MASTER).make("Game", score=0)

    @function(transaction=together)
    def play(request: Request, game: str) -> int:
        count(request, game)
        return score(game)

    replies = at_once([partial(call, "play", game)] * 8)
    assert [reply.json for reply in replies] == [{"result": 1}] * 8
    assert score(game) == 1
