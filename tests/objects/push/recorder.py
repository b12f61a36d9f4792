"""An adapter that keeps what it gets, and answers what a test says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from objects.push.adapters import setup
from objects.push.adapters.base import SENT, Message, Outcome


class Recorder:
    """In the place of ``log``."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.outcomes: dict[str, Outcome] = {}
        self.error: Exception | None = None

    @classmethod
    @contextmanager
    def installed(cls) -> Iterator[Recorder]:
        recorder = cls()
        before = setup.FACTORIES["log"]
        setup.FACTORIES["log"] = lambda: recorder
        try:
            yield recorder
        finally:
            setup.FACTORIES["log"] = before

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        self.messages += messages
        if self.error is not None:
            raise self.error
        return [self.outcomes.get(message.device_token, SENT) for message in messages]

    async def close(self) -> None:
        return None
