"""Log records as staff read them: a line each, its links, and its fields in groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.dateparse import parse_datetime

from backend.logs.chart import category
from backend.logs.filters import LogFilter
from backend.logs.search import Entry
from objects.core.names import USER, is_class_name, is_object_id

_LONGEST_DETAILS: Final = 300  # characters
_LONGEST_DETAIL: Final = 80
_IN_THE_LINE: Final = frozenset(
    (
        *("event", "timestamp", "level", "process", "request_id", "logger", "exception"),
        *("shortened", "user", "staff", "ms", "task", "task_id"),
    )
)
"""What a line shows in a place of its own, or is too long for one."""
_FILTERS: Final = {
    **{field.name: field.name for field in fields(LogFilter)},
    **{"staff": "user", "job": "function", "trigger": "function"},
}
"""The filter that finds records with the same value of a field."""
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Request": (
        *("method", "path", "route", "item", "status", "code", "error", "ms", "bytes"),
        *("function", "job", "ran"),
    ),
    "Caller": ("key", "user", "session", "staff", "address"),
    "Object": ("class_name", "object_id"),
    "Details": (),
    "Record": ("timestamp", "level", "process", "logger", "event", "request_id", "shortened"),
}
_CALLERS: Final = {"master": "master", "read-only master": "reader"}
_ACTIONS: Final = {"POST": "create", "PUT": "update", "DELETE": "delete"}


@dataclass(frozen=True)
class Line:
    """A record as a row of the list."""

    place: str
    moment: str
    """ISO 8601 in UTC, or empty."""
    time: str
    level: str
    kind: str
    """One of ``backend.logs.chart.CATEGORIES``."""
    badge: str
    process: str
    request_id: str
    text: str
    details: str
    who: str
    ms: str


@dataclass(frozen=True)
class Field:
    """A field of a record, with the address of the records that have the same value."""

    name: str
    text: str
    similar: str


@dataclass(frozen=True)
class Link:
    """A way from a record to another page."""

    title: str
    address: str
    is_explanation: bool = False
    """Whether it explains why the request was refused."""


def line_of(entry: Entry) -> Line:
    """Return a record as a row."""
    record = entry.fields
    status, kind = record.get("status"), category(record)
    is_request = record.get("logger") == "request"
    if is_request:
        text = f"{record.get('method', '')} {_text(record.get('path', ''))}"
        details = ""
        if "error" in record:
            details = f"{_text(record.get('code', ''))} {_text(record['error'])}"
    else:
        text = _text(record.get("event", ""))
        details = ", ".join(
            f"{name}={_text(value)[:_LONGEST_DETAIL]}"
            for name, value in record.items()
            if name not in _IN_THE_LINE
        )
    moment = _moment(record.get("timestamp"))
    return Line(
        entry.place,
        moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else "",
        moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] if moment else "",
        _text(record.get("level", "")),
        kind,
        str(status) if is_request and isinstance(status, int) else _text(record.get("level", "")),
        _text(record.get("process", "")),
        _text(record.get("request_id", "")),
        text,
        details[:_LONGEST_DETAILS],
        _text(record.get("user") or record.get("staff") or record.get("key") or ""),
        _text(record["ms"]) if "ms" in record else "",
    )


def groups_of(entry: Entry) -> list[tuple[str, list[Field]]]:
    """Return the fields of a record in groups, without the traceback."""
    record = {name: value for name, value in entry.fields.items() if name != "exception"}
    placed = {name for names in _GROUPS.values() for name in names}
    groups = []
    for title, names in _GROUPS.items():
        shown = names or sorted(record.keys() - placed)
        rows = [_field(name, record[name]) for name in shown if name in record]
        if rows:
            groups.append((title, rows))
    return groups


def links_of(request: HttpRequest, entry: Entry) -> list[Link]:
    """Return where a record leads to, as far as the staff user may go there.

    A failed request leads to the page that explains access, filled in.
    """
    record = entry.fields

    def text(name: str) -> str:
        value = record.get(name)
        return value if isinstance(value, str) else ""

    links: list[Link] = []

    def add(title: str, permission: str, name: str, *parts: str, **query: str) -> None:
        if all(parts) and request.user.has_perm(permission):
            try:
                address = reverse(f"admin:{name}", args=parts)
            except NoReverseMatch:  # of a name that no page can have
                return
            if query:
                address = f"{address}?{urlencode(query)}"
            links.append(Link(title, address, is_explanation=name == "access"))

    class_name, object_id, user = text("class_name"), text("object_id"), text("user")
    is_class = is_class_name(class_name)
    if is_class and (action := _action(record)) and _is_failure(record):
        caller = "user" if user else _CALLERS.get(text("key"), "public")
        question = {"caller": caller, "user": user, "action": action, "class": class_name}
        view = "objects.view_storedobject"
        add("Why may … ?", view, "access", **question, object=object_id)
    if is_class and is_object_id(object_id):
        view = "objects.view_storedobject"
        if class_name == USER:
            add(f"User {object_id}", "objects.view_user", "people_user", object_id)
        else:
            add(f"{class_name} {object_id}", view, "data_object", class_name, object_id)
    if is_class:
        add(f"Class {class_name}", "objects.view_storedobject", "data_objects", class_name)
    if name := text("function"):
        add(f"Function {name}", "functions.view_function", "code_function", name)
    if text("logger") == "jobs" and (run := text("status")):
        add("Run of the job", "functions.view_jobstatus", "functions_jobstatus_change", run)
    if user and not (class_name == USER and object_id == user):
        add(f"User {user}", "objects.view_user", "people_user", user)
        add("Sessions of the user", "objects.view_session", "people_sessions", user=user)
    return links


def _action(record: Mapping[str, Any]) -> str:
    """Return what a request wanted to do with objects of its class, or an empty text."""
    route = str(record.get("route", ""))
    method = str(record.get("item") or record.get("method", "")).partition(" ")[0]
    if route.startswith(("/schemas", "/purge", "/hooks")):
        return ""
    if method == "GET":
        return "get" if record.get("object_id") else "find"
    return _ACTIONS.get(method, "")


def _is_failure(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("code"), int) and record.get("logger") == "request"


def _field(name: str, value: Any) -> Field:
    text = _text(value)
    similar = ""
    if name in _FILTERS and isinstance(value, str | int) and text and name != "request_id":
        query = urlencode({_FILTERS[name]: text})
        similar = f"{reverse('admin:logs')}?{query}"
    return Field(name, text, similar)


def _moment(value: object) -> datetime | None:
    try:
        time = parse_datetime(value) if isinstance(value, str) else None
        if time is None:
            return None
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
