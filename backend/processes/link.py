"""Between ``script/server`` and the process that it has loaded the application: a few messages.

Each message is one line of JSON; the listening sockets go with one of them, so that clients find
them open while the processes behind them are replaced.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any, Final

VARIABLE: Final = "LAUNCHER_LINK"
"""The environment variable with the number of the open socket."""
SMALL: Final = "small"
"""The profile for machines with little memory, of the setting ``PROFILE``."""
_MOST_SOCKETS: Final = 32


class Closed(Exception):
    """The other side has ended."""


class Link:
    """One end. Both sides send and receive in turn."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @classmethod
    def from_environment(cls) -> Link | None:
        """The end that ``script/server`` has passed on; None in other processes."""
        number = os.environ.pop(VARIABLE, "")
        return cls(socket.socket(fileno=int(number))) if number else None

    def send(self, message: Any, sockets: Sequence[socket.socket] = ()) -> None:
        """Send a message, and open sockets with it. Raises ``Closed``."""
        line = json.dumps(message).encode() + b"\n"
        numbers = [each.fileno() for each in sockets]
        try:
            sent = socket.send_fds(self._end, [line], numbers) if numbers else 0
            self._end.sendall(line[sent:])
        except OSError:
            raise Closed from None

    def receive(self) -> tuple[Any, list[socket.socket]]:
        """Wait for the next message. Raises ``Closed``."""
        line, sockets = b"", []
        while not line.endswith(b"\n"):
            try:
                data, numbers, _, _ = socket.recv_fds(self._end, 65536, _MOST_SOCKETS)
            except OSError:
                raise Closed from None
            if not data:
                raise Closed
            line += data
            sockets += [socket.socket(fileno=number) for number in numbers]
        return json.loads(line), sockets

    def close(self) -> None:
        self._end.close()
