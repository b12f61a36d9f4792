"""How many threads wait for other servers at the same moment."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

import pytest

from backend.kernel.outgoing import Unreachable, retry_after, turn
from tests.polling import until

PATIENCE = 30
REFUSED = 5


def test_when_a_quarter_of_the_threads_waits_for_a_turn_others_are_refused_at_once(
    settings: Any,
) -> None:
    half, quarter = settings.WEB_THREADS // 2, max(1, settings.WEB_THREADS // 4)
    entered: list[int] = []
    refused: list[str] = []

    def take_a_turn() -> None:
        try:
            with turn():
                entered.append(1)
        except Unreachable as error:
            refused.append(str(error))

    threads = [threading.Thread(target=take_a_turn) for _ in range(quarter + REFUSED)]
    with ExitStack() as turns:
        for _ in range(half):
            turns.enter_context(turn())
        for thread in threads:
            thread.start()
        until(lambda: len(refused) == REFUSED, PATIENCE)
    for thread in threads:
        thread.join(PATIENCE)
    assert refused == ["too many requests are waiting for answers"] * REFUSED
    assert len(entered) == quarter, "those that wait get the turns"


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
