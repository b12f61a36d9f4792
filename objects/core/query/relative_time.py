"""``$relativeTime``: "in 2 days", "5 minutes ago", "now", "12 years 3 months ago"."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from backend.kernel.errors import InvalidJSON
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.query.messages import parse_message
from objects.core.values import date, normalise_date

# A year and a month have a fixed length, as Parse Server counts them.
_SECONDS: Final = {
    name: seconds
    for unit, seconds in (
        ("yr yrs year years", 31_536_000),
        ("mo mos month months", 2_592_000),
        ("wk wks week weeks", 604_800),
        ("d day days", 86_400),
        ("hr hrs hour hours", 3_600),
        ("min mins minute minutes", 60),
        ("sec secs second seconds", 1),
    )
    for name in unit.split()
}


def relative_date(text: object, now: datetime, place: str) -> Json:
    """Return the Date that a text means at a moment (UTC), or ``InvalidJSON``."""
    if not isinstance(text, str):
        raise InvalidJSON(parse_message("bad $relativeTime value, should be string", place))
    words = text.lower().split()
    if words == ["now"]:
        return _date(now, place)
    future, past = words[:1] == ["in"], words[-1:] == ["ago"]
    if future and past:
        raise _invalid(text, "Time cannot have both 'in' and 'ago'", place)
    if not future and not past:
        raise _invalid(text, "Time should either start with 'in' or end with 'ago'", place)
    words = words[1:] if future else words[:-1]
    if not words or len(words) % 2:
        raise _invalid(text, "Invalid time string. Dangling unit or number.", place)
    seconds = 0
    for amount, unit in zip(words[::2], words[1::2], strict=True):
        if not amount.removeprefix("-").isdecimal() or len(amount) > 12 or not amount.isascii():
            raise _invalid(text, f"'{shown(amount)}' is not an integer.", place)
        if unit not in _SECONDS:
            raise _invalid(text, f"Invalid interval: '{shown(unit)}'", place)
        seconds += int(amount) * _SECONDS[unit]
    try:
        return _date(now + timedelta(seconds=seconds if future else -seconds), place)
    except OverflowError:
        raise _invalid(text, "there is no such time", place) from None


def _invalid(text: str, reason: str, place: str) -> InvalidJSON:
    return InvalidJSON(parse_message(f"bad $relativeTime ({shown(text)}) value. {reason}", place))


def _date(moment: datetime, place: str) -> Json:
    return date(normalise_date(moment.isoformat(timespec="milliseconds"), place))
