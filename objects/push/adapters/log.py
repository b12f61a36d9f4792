"""The adapter ``log``: writes a line for each message and sends nothing."""

from __future__ import annotations

from collections.abc import Sequence

from backend.logs.setup import get_logger
from objects.push.adapters.base import SENT, Message, Outcome

log = get_logger("push")


class LogAdapter:
    """Counts every message as sent."""

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        for message in messages:
            # Neither the token nor the text: both may be personal.
            log.info(
                "notification not sent: adapter log",
                push=message.push_id,
                installation=message.installation,
                type=message.device_type,
                fields=sorted(message.data),
            )
        return [SENT] * len(messages)

    async def close(self) -> None:
        return None
