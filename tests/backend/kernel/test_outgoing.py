"""How many threads wait for other servers at the same moment."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from backend.kernel.outgoing import Unreachable, origin_of, retry_after
from backend.kernel.outgoing.turns import Turns
from tests.polling import until

PATIENCE = 30
REFUSED = 5
SLOW, OTHER = "https://slow.example:443", "https://other.example"


def test_when_a_quarter_of_the_threads_waits_for_a_turn_others_are_refused_at_once() -> None:
    threads, half, quarter = 16, 8, 4
    turns = Turns(threads)
    entered: list[int] = []
    refused: list[str] = []

    def take_a_turn() -> None:
        try:
            with turns.turn(SLOW):
                entered.append(1)
        except Unreachable as error:
            refused.append(str(error))

    waiting = [threading.Thread(target=take_a_turn) for _ in range(quarter + REFUSED)]
    with ExitStack() as held:
        for _ in range(half):
            held.enter_context(turns.turn(SLOW))
        for thread in waiting:
            thread.start()
        until(lambda: len(refused) == REFUSED, PATIENCE)
    for thread in waiting:
        thread.join(PATIENCE)
    assert refused == ["too many requests wait for responses of other servers"] * REFUSED
    assert len(entered) == quarter, "those that wait get the turns"


@pytest.mark.parametrize("threads", [4, 5, 6, 8, 16])
def test_a_server_that_does_not_answer_leaves_turns_to_others(threads: int) -> None:
    turns = Turns(threads, patience=0)
    with ExitStack() as held:
        for _ in range(threads // 2):
            held.enter_context(turns.turn(SLOW))
        with pytest.raises(Unreachable):
            held.enter_context(turns.turn(SLOW))
        with turns.turn(OTHER):
            pass
        for number in range(threads // 4):
            held.enter_context(turns.turn(f"{OTHER}{number}"))
        with pytest.raises(Unreachable):
            held.enter_context(turns.turn(OTHER))


def test_a_request_does_not_wait_behind_those_of_a_server_that_took_long_lately() -> None:
    turns = Turns(4, patience=0)
    with turns.turn(SLOW):
        pass
    turns.patience = 1000
    with turns.turn(SLOW), turns.turn(SLOW):
        with pytest.raises(Unreachable), turns.turn(SLOW):
            pass
        with turns.turn(OTHER):
            pass


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.example/hook?x=1", "https://a.example:443"),
        ("https://A.example:443/other", "https://a.example:443"),
        ("http://a.example", "http://a.example:80"),
        ("http://a.example:8080/", "http://a.example:8080"),
        ("ftp://a.example/", "ftp://a.example:0"),
        ("https://name:password@a.example/", ""),
        ("", ""),
    ],
)
def test_a_server_is_its_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_requests_that_may_be_sent_later_have_a_quarter_and_take_no_turn_of_others() -> None:
    turns = Turns(8)
    with ExitStack() as held:
        assert [held.enter_context(turns.spare_turn()) for _ in range(3)] == [True, True, False]
        for _ in range(4):
            held.enter_context(turns.turn(SLOW))
        with pytest.raises(Unreachable):
            held.enter_context(turns.turn(OTHER))
    with ExitStack() as held:
        for number in range(6):
            held.enter_context(turns.turn(f"{OTHER}{number}"))
        assert not held.enter_context(turns.spare_turn())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        (" 7 ", 7),
        ("999999999", 999_999_999),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("9" * 400, None),
        ("٣", None),
    ],
)
def test_what_another_server_asks_for_by_retry_after(
    text: str | None, seconds: float | None
) -> None:
    assert retry_after(text) == seconds
