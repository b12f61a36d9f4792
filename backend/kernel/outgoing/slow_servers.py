"""Servers whose last request took long."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_MAX_SERVERS: Final = 1000


class SlowServers:
    """The servers whose last request took more than ``seconds``; of more than a thousand, the
    latest. The caller holds a lock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._names: dict[str, None] = {}

    @property
    def names(self) -> Collection[str]:
        return self._names.keys()

    def note(self, server: str, seconds: float) -> None:
        """Note how long a request to a server has taken."""
        self._names.pop(server, None)
        if seconds > self._seconds:
            self._names[server] = None
            if len(self._names) > _MAX_SERVERS:
                del self._names[next(iter(self._names))]
