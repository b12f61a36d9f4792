"""Between ``script/server`` and the process that loads the application: a few messages.

Each message is one line of JSON; the listening sockets go with one of them, so that clients find
them open while the processes behind them are replaced.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

VARIABLE: Final = "LAUNCHER_LINK"
"""The environment variable with the number of the open socket."""
SMALL: Final = "small"
"""The profile for machines with little memory, of the setting ``PROFILE``."""
REFUSAL: Final = "refusal"
"""The key of the message by which the application says, in a sentence, why it doesn't start."""
TROUBLE: Final = "trouble"
"""The key of the message that says, in a sentence, why a role's process doesn't start."""
_MOST_SOCKETS: Final = 32


class Closed(Exception):
    """The other side has ended."""


class Link:
    """One end."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._data = b""  # that has come and isn't a message yet, or is a later one
        self._sockets: list[socket.socket] = []

    @classmethod
    def from_environment(cls) -> Link | None:
        """The end that ``script/server`` has passed on; None in other processes."""
        number = os.environ.pop(VARIABLE, "")
        return cls(socket.socket(fileno=int(number))) if number else None

    def send(self, message: Any, sockets: Sequence[socket.socket] = ()) -> None:
        """Send a message, and open sockets with it. Raises ``Closed``."""
        line = json.dumps(message).encode() + b"\n"
        numbers = [each.fileno() for each in sockets]
        self._end.settimeout(None)
        try:
            sent = socket.send_fds(self._end, [line], numbers) if numbers else 0
            self._end.sendall(line[sent:])
        except OSError:
            raise Closed from None

    def receive(self, patience: float | None = None) -> tuple[Any, list[socket.socket]]:
        """Wait for the next message. Raises ``Closed``, and ``TimeoutError`` if the rest of it
        doesn't begin to come within ``patience`` seconds; it can be received later then."""
        self._end.settimeout(patience)
        while b"\n" not in self._data:
            self._read()
        line, _, self._data = self._data.partition(b"\n")
        sockets, self._sockets = self._sockets, []
        return json.loads(line), sockets

    def _read(self) -> None:
        try:
            data, numbers, _, _ = socket.recv_fds(self._end, 65536, _MOST_SOCKETS)
        except TimeoutError:
            raise
        except OSError:
            raise Closed from None
        self._sockets += [socket.socket(fileno=number) for number in numbers]
        if not data:
            raise Closed
        self._data += data

    def refuse(self, end: BaseException) -> None:
        """Send why this side doesn't start, as far as that is a sentence."""
        reason = end.code if isinstance(end, SystemExit) else f"{type(end).__name__}: {end}"
        if isinstance(reason, str):
            with suppress(Closed):
                self.send({REFUSAL: reason})

    def close(self) -> None:
        for each in (self._end, *self._sockets):
            each.close()
