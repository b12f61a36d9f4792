"""A connection's transport: what was written and what the client has taken, and pauses."""

from __future__ import annotations

import asyncio
from typing import Final

from backend.server.connection.deadlines import Pace

_WRITE_HIGH: Final = 64 * 1024
"""The transport's high-water mark, in bytes."""


class Flow:
    """The transport of one connection, with its flow control in both directions."""

    __slots__ = ("_pace", "_transport", "_written", "is_full", "is_reading_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(_WRITE_HIGH)
        self._transport = transport
        self._pace: Pace | None = None
        self._written = 0
        self.is_full = False
        """Whether more than the high-water mark is unsent. The connection sets it."""
        self.is_reading_paused = False

    @property
    def unsent(self) -> int:
        """Bytes that the client hasn't taken."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Send data, after what is unsent."""
        self._written += len(data)
        self._transport.write(data)

    def falls_behind(self, now: float, grace: float, min_rate: int) -> bool:
        """Whether the client takes less than ``min_rate``. Call it at every check of deadlines."""
        unsent = self.unsent
        if not unsent:
            self._pace = None
            return False
        taken = self._written - unsent
        if self._pace is None:
            self._pace = Pace(now, taken)
            return False
        return self._pace.is_below(now, taken, grace, min_rate)

    def pause_reading(self) -> None:
        """Receive nothing until ``resume_reading``."""
        if not self.is_reading_paused:
            self.is_reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Receive again. No effect if reading isn't paused."""
        if self.is_reading_paused:
            self.is_reading_paused = False
            self._transport.resume_reading()

    def end_writing(self) -> None:
        """Close the sending side once everything is sent."""
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def close(self) -> None:
        """Close once everything is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    @property
    def descriptor(self) -> int:
        """The socket's file descriptor."""
        number: int = self._transport.get_extra_info("socket").fileno()
        return number
