"""The body of a push, checked: whom it is for, when it is sent, until when it is worth sending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeGuard

from backend.kernel.errors import PushMisconfigured
from backend.kernel.json_types import Json, Wire
from backend.kernel.texts.shown import shown_value

_LONGEST_INTERVAL: Final = 10 * 366 * 86_400  # seconds
LARGEST_BADGE: Final = 2**31 - 1
_BAD_BADGE: Final = "Invalid value for badge, expected number or 'Increment' or {increment: number}"
_YEARS: Final = (2, 9998)
_FIELDS_NOT_SENT: Final = frozenset(
    {"where", "channels", "push_time", "expiration_interval", "audience_id"}
)


@dataclass(frozen=True, slots=True)
class BadgeChange:
    """What a push does to the badges of installations: add to them, or set them."""

    amount: int | float
    is_increment: bool

    def after(self, badge: Json) -> int | float:
        """Return the badge of an installation that has had ``badge``, which any client sets.

        It is one that devices can show: the sum is at most ``LARGEST_BADGE``, and what isn't a
        badge counts as 0.
        """
        if not self.is_increment:
            return self.amount
        total = (badge if is_badge(badge) else 0) + self.amount
        return max(-LARGEST_BADGE, min(total, LARGEST_BADGE))


@dataclass(frozen=True, slots=True)
class PushRequest:
    """A checked push.

    ``where`` is the query for installations, not parsed yet. ``body`` is what adapters get:
    ``data`` and what stands beside it. ``push_at`` is None for a push that is sent at once; if it
    ``is_local``, it is the time on the clocks of devices, as if it were UTC. ``expires_at`` is in
    milliseconds, ``expiration_interval`` in seconds from the time of sending.
    """

    where: Json
    body: Wire
    badge: BadgeChange | None = None
    push_at: datetime | None = None
    is_local: bool = False
    expires_at: int | None = None
    expiration_interval: int | float | None = None
    audience_id: str | None = None

    @property
    def data(self) -> Wire:
        data = self.body.get("data")
        return data if isinstance(data, dict) else {}

    @property
    def push_time(self) -> str | None:
        """The time of a scheduled push as its status shows it: without a zone if it is local."""
        if self.push_at is None:
            return None
        text = self.push_at.isoformat(timespec="milliseconds").removesuffix("+00:00")
        return text if self.is_local else f"{text}Z"


def parse_push(body: Mapping[str, Json], now: datetime) -> PushRequest:
    """Return the push that a body describes. Raises ``PushMisconfigured``."""
    where = _where(body)
    data = body.get("data")
    if data is not None and not isinstance(data, dict):
        raise PushMisconfigured("data must be an object.")
    expires_at = _expiration_time(body)
    interval = _expiration_interval(body)
    if expires_at is not None and interval:
        raise PushMisconfigured("Both expiration_time and expiration_interval cannot be set")
    if interval and "push_time" not in body:
        expires_at = round((now + timedelta(seconds=interval)).timestamp() * 1000)
    push_at, is_local = _push_time(body)
    audience_id = body.get("audience_id")
    return PushRequest(
        where=where,
        body={name: value for name, value in body.items() if name not in _FIELDS_NOT_SENT},
        badge=_badge(data or {}),
        push_at=push_at,
        is_local=is_local,
        expires_at=expires_at,
        expiration_interval=interval,
        audience_id=audience_id if isinstance(audience_id, str) and audience_id else None,
    )


def _where(body: Mapping[str, Json]) -> Json:
    if "where" in body and "channels" in body:
        raise PushMisconfigured("Channels and query can not be set at the same time.")
    if "where" in body:
        return body["where"]
    if "channels" in body:
        return {"channels": {"$in": body["channels"]}}
    raise PushMisconfigured('Sending a push requires either "channels" or a "where" query.')


def _expiration_time(body: Mapping[str, Json]) -> int | None:
    if "expiration_time" not in body:
        return None
    return round(_moment(body["expiration_time"]).astimezone(UTC).timestamp() * 1000)


def _expiration_interval(body: Mapping[str, Json]) -> int | float | None:
    if "expiration_interval" not in body:
        return None
    interval = body["expiration_interval"]
    if not _is_number(interval) or not 0 < interval <= _LONGEST_INTERVAL:
        raise PushMisconfigured("expiration_interval must be a number greater than 0")
    return interval


def _push_time(body: Mapping[str, Json]) -> tuple[datetime | None, bool]:
    if "push_time" not in body:
        return None, False
    moment = _moment(body["push_time"], is_naive=True)
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC), moment.tzinfo is None


def _moment(value: Json, *, is_naive: bool = False) -> datetime:
    """Return a moment given as seconds since 1970 or as text; naive if the text has no zone and
    ``is_naive``."""
    try:
        moment = _parsed(value)
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        moment = None
    # Times near the ends of the calendar have none in other zones, or when they are rounded.
    if moment is None or not _YEARS[0] <= moment.year <= _YEARS[1]:
        raise PushMisconfigured(f"{shown_value(value)} is not valid time.")
    return moment if is_naive or moment.tzinfo else moment.replace(tzinfo=UTC)


def _parsed(value: Json) -> datetime | None:
    if _is_number(value):
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return parsedate_to_datetime(text)


def is_badge(value: Json) -> TypeGuard[int | float]:
    """Return whether a value is a number that devices can show as a badge."""
    # Integers are compared exactly, however long they are. NaN compares as false.
    return _is_number(value) and -LARGEST_BADGE <= value <= LARGEST_BADGE


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _badge(data: Mapping[str, Any]) -> BadgeChange | None:
    badge = data.get("badge")
    if not badge:
        return None
    if _is_increment(badge):
        return BadgeChange(1, True)
    if isinstance(badge, dict) and _is_increment(badge.get("__op")):
        amount = _badge_number(badge.get("amount"))
        if amount:
            return BadgeChange(amount, True)
    else:
        amount = _badge_number(badge)
        if amount is not None:
            return BadgeChange(amount, False)
    raise PushMisconfigured(_BAD_BADGE)


def _is_increment(value: Any) -> bool:
    return isinstance(value, str) and value.lower() == "increment"


def _badge_number(value: Any) -> int | float | None:
    """Return a number, also one that is text, or None."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not is_badge(value):
        return None
    return int(value) if value == int(value) else value
