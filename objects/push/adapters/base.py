"""The interface of adapters: messages in, outcomes out."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import NAMESPACE_URL, UUID, uuid5

from backend.kernel.json_types import Wire

CHUNK: Final = 50
"""Targets that one worker claims, sends and records at a time."""
CHUNK_WAIT: Final = 30.0
"""Seconds that an adapter may take to send a chunk."""
LONGEST_REASON: Final = 200  # characters
LONGEST_PAUSE: Final = 3600.0
"""Seconds that a service may ask to wait before the next attempt."""


@dataclass(frozen=True, slots=True)
class Message:
    """A notification for one device.

    ``body`` is the push with ``data`` as this device gets it. ``expires_at`` is in seconds since
    1970. ``push_id`` is that of the status, and the same in all attempts.
    """

    push_id: str
    installation: str
    device_token: str
    device_type: str
    app_identifier: str
    body: Wire
    expires_at: int | None
    sent_at: float

    @property
    def data(self) -> Wire:
        data = self.body.get("data")
        return data if isinstance(data, dict) else {}

    @property
    def key(self) -> UUID:
        """The same for each attempt, and another one for each message."""
        return uuid5(NAMESPACE_URL, f"push:{self.push_id}:{self.installation}")


class Result(enum.Enum):
    """What became of a message."""

    SENT = "the service has accepted it"
    FAILED = "it can't be sent"
    GONE = "the device token isn't valid any more"
    LATER = "it may be accepted later"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attempt. ``pause`` is what the service asks for, in seconds."""

    result: Result
    reason: str = ""
    pause: float | None = None


SENT: Final = Outcome(Result.SENT)
INTERNAL_ERROR: Final = Outcome(
    Result.LATER, "internal error: look for its traceback in the service's log"
)


def failed(reason: str) -> Outcome:
    return Outcome(Result.FAILED, reason[:LONGEST_REASON])


def gone(reason: str) -> Outcome:
    return Outcome(Result.GONE, reason[:LONGEST_REASON])


def later(reason: str, pause: float | None = None) -> Outcome:
    pause = None if pause is None else min(max(pause, 0.0), LONGEST_PAUSE)
    return Outcome(Result.LATER, reason[:LONGEST_REASON], pause)


class BadMessage(Exception):
    """A message that the service would refuse, with the reason."""


class BadKey(Exception):
    """A key in the settings that can't be used. The text doesn't quote it."""


class Adapter(Protocol):
    """Sends messages by one service. Instances belong to one run of a task."""

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        """Send at most ``CHUNK`` messages and return the outcome of each, in order.

        Takes ``CHUNK_WAIT`` seconds at most.
        """

    async def close(self) -> None:
        """Close connections."""
