"""Adapters of tests in the place of ``log``: one that records what it gets, or any other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from django.db import connections

from backend.kernel.interruptions import Interruption
from objects.push.adapters import setup
from objects.push.adapters.base import SENT, Adapter, Message, Outcome


class WorkerKilled(Interruption):
    """Ends a worker while it sends, before it records an outcome."""


class Recorder:
    """Records messages and returns the outcomes that a test chooses, by device token.

    ``error`` is raised for all messages. ``meanwhile`` is called once, while a chunk is being sent,
    in another thread and with another connection to the database.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.outcomes: dict[str, Outcome] = {}
        self.error: BaseException | None = None
        self.meanwhile: Callable[[], object] | None = None

    @classmethod
    @contextmanager
    def installed(cls) -> Iterator[Recorder]:
        recorder = cls()
        with adapters(log=recorder):
            yield recorder

    @property
    def tokens(self) -> list[str]:
        return [message.device_token for message in self.messages]

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        self.messages += messages
        if self.error is not None:
            raise self.error
        if self.meanwhile is not None:
            action, self.meanwhile = self.meanwhile, None
            await asyncio.to_thread(_with_own_connection, action)
        return [self.outcomes.get(message.device_token, SENT) for message in messages]

    async def close(self) -> None:
        return None


@contextmanager
def adapters(**by_name: Adapter) -> Iterator[None]:
    """Have pushes sent by these adapters instead of those that have their names."""
    before = {name: setup.FACTORIES[name] for name in by_name}
    for name, adapter in by_name.items():
        setup.FACTORIES[name] = lambda adapter=adapter: adapter
    try:
        yield
    finally:
        setup.FACTORIES.update(before)


def _with_own_connection(action: Callable[[], object]) -> None:
    try:
        action()
    finally:
        connections.close_all()
