"""Push notifications from server code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from backend.kernel.principal import MASTER
from functions.runtime.values import encode
from objects.push import service


def send_push(
    *,
    where: Mapping[str, Any] | None = None,
    channels: Sequence[str] | None = None,
    data: Mapping[str, Any] | None = None,
    push_time: datetime | None = None,
    expiration_time: datetime | None = None,
    expiration_interval: float | None = None,
    **options: Any,
) -> str:
    """Send a push to the installations of a query or of channels; return its ``_PushStatus`` id.

    It is sent when the current transaction is committed. ``push_time`` without a zone is the time
    on the clocks of devices. ``options`` are further fields of the body (``docs/push.md``). The
    rights are those of the master key. Raises ``ServiceError`` (115) for what can't be sent.
    """
    body: dict[str, Any] = {
        "where": None if where is None else encode(dict(where), as_field=True),
        "channels": None if channels is None else [*channels],
        "data": encode(dict(data or {}), as_field=True),
        "push_time": _text(push_time),
        "expiration_time": _text(expiration_time),
        "expiration_interval": expiration_interval,
        **encode(options, as_field=True),
    }
    present = {name: value for name, value in body.items() if value is not None}
    return service.send(MASTER, present, source="function")


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
