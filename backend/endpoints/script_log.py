"""``/scriptlog``: the latest log records, in the form that Parse Dashboard shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Final, NotRequired, TypedDict

from msgspec import Meta

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel.errors import PushMisconfigured, ServiceUnavailable
from backend.kernel.texts.encoding import encode_json
from backend.logs import search, store
from backend.logs.filters import LogFilter
from backend.logs.search import LogUnavailable
from backend.openapi import DateTime, answer, describes, query
from objects.core.values import wire_time

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_SIZE: Final = 10  # records, unless the request says how many
_MOST: Final = 1000  # records
_PERIOD: Final = timedelta(days=7)
# A text in a record is at most 4 KB long (backend.logs.store), a message of many fields isn't.
_LONGEST: Final = 8 * 1024  # characters of a message
_NEVER: Final = {"event", "level", "timestamp", "exception"}  # have other names here
_LEVELS: Final = {"warning": "warn", "critical": "error"}
_TIME: Final = {"type": "string", "format": "date-time"}


class LogEntry(TypedDict):
    """A log record. Further fields depend on what was logged."""

    timestamp: DateTime
    level: str
    message: str
    method: NotRequired[Annotated[str, Meta(description="Of a request.")]]
    url: NotRequired[Annotated[str, Meta(description="The path of a request.")]]
    status: NotRequired[int]
    requestId: NotRequired[str]
    stack: NotRequired[Annotated[str, Meta(description="The traceback of an error.")]]


class ScriptLogView(ServiceView):
    """Log records of all processes, for the master key; the read-only one as well."""

    tag = "Service"
    requires = Requires.MASTER_KEY

    @describes(
        "readLog",
        "The latest log records",
        parameters=(
            query("level", {"type": "string"}, "`error` for errors alone; `info` for all."),
            query("from", _TIME, "Start of the period; by default a week ago."),
            query("until", _TIME, "End of the period; by default now."),
            query("size", {"type": "integer", "maximum": _MOST}, "Number of records."),
            query("n", {"type": "integer", "maximum": _MOST}, "The same as `size`."),
            query("order", {"type": "string"}, "`asc` for the oldest first; `desc` by default."),
        ),
        response=answer("The records.", list[LogEntry]),
    )
    def get(self, call: Call) -> Answer:
        if not store.is_on():
            # Parse Server's code, 115.
            raise PushMisconfigured("Querying logs is not supported with this adapter: LOG_KEEP=0")
        now = datetime.now(UTC)
        try:
            entries = search.between(
                LogFilter(level="error" if call.params.get("level") == "error" else ""),
                _time(call.params.get("from")) or now - _PERIOD,
                _time(call.params.get("until")) or now,
                oldest_first=call.params.get("order") == "asc",
                limit=_size(call.params),
            )
        except LogUnavailable:
            raise ServiceUnavailable(
                "Log records can't be read: Redis, which stores them, doesn't answer."
            ) from None
        return Answer([_wire(entry.fields) for entry in entries])


def _time(value: object) -> datetime | None:
    """Return the time that a text names, or None. Without an offset it is in UTC."""
    if not isinstance(value, str) or not value:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            time = read(value)
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            continue
    return None


def _size(params: Mapping[str, Any]) -> int:
    value = params.get("n") or params.get("size")
    try:
        size = int(str(value))
    except ValueError:
        return _SIZE
    return min(size, _MOST) if size > 0 else _SIZE


def _wire(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record in Parse's form. Secrets were masked before it was stored."""
    level = str(record.get("level", "info"))
    entry: dict[str, Any] = {
        "timestamp": wire_time(_time(record.get("timestamp")) or _EPOCH),
        "level": _LEVELS.get(level, level),
        "message": _message(record)[:_LONGEST],
    }
    names = {"path": "url", "request_id": "requestId", "exception": "stack"}
    for name, value in record.items():
        if name in names:
            entry[names[name]] = value
        elif name not in _NEVER and name not in entry:
            entry[name] = value
    return entry


def _message(record: Mapping[str, Any]) -> str:
    if record.get("logger") == "request":
        return (
            f"{record.get('method', '')} {record.get('path', '')}:"
            f" {record.get('status', '')} in {record.get('ms', '?')} ms"
        )
    event = _text(record.get("event", ""))
    shown = {"logger", "process", "request_id", "shortened"} | _NEVER
    details = [f"{name}={_text(value)}" for name, value in record.items() if name not in shown]
    return " ".join((event, *details))


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode_json(value).decode()
