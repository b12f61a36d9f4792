"""How many threads wait for other servers at the same moment."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

from backend.kernel.outgoing import Unreachable, turn
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
