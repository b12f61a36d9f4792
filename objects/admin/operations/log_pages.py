"""Log records of all processes, searched by request id and other fields."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_safe

from backend.logs import search, store
from backend.logs.search import LEVELS, Entry, LogFilter, LogUnavailable, Page
from backend.site.model_admin import page, render

VIEW: Final = "backend.view_logrecord"
PROCESSES: Final = ("web", "realtime", "worker", "jobs", "beat", "manage")
_ON_A_PAGE = 100
_AWAY = "Redis, which keeps the records, doesn't answer."
_LONGEST = 200  # characters of what is asked for

# What a line shows in a place of its own, or is too long for one.
_IN_THE_LINE = frozenset(
    {"event", "timestamp", "level", "process", "request_id", "logger", "exception", "shortened"}
)


@dataclass(frozen=True)
class Line:
    """A record as a row of the list."""

    place: str
    time: str
    level: str
    process: str
    request_id: str
    text: str
    details: str


@page(
    "logs/",
    name="logs",
    permission=VIEW,
    title="Logs",
    section="Operations",
    icon="receipt_long",
    position=10,
)
@require_safe
def logs(request: HttpRequest) -> HttpResponseBase:
    """Show the matching records, newest first."""
    criteria = LogFilter(
        **{
            field.name: request.GET.get(field.name, "").strip()[:_LONGEST]
            for field in fields(LogFilter)
        }
    )
    before = request.GET.get("before", "")
    page_of_log = Page([], None)
    complaint = ""
    if before and not search.is_place(before):
        complaint = "There is no such page."
    else:
        try:
            page_of_log = search.search(criteria, before=before or None, limit=_ON_A_PAGE)
        except LogUnavailable:
            complaint = _AWAY
    parameters = {name: value for name, value in vars(criteria).items() if value}
    return render(
        request,
        "admin/operations/logs.html",
        "Logs",
        wanted=criteria,
        levels=LEVELS,
        processes=PROCESSES,
        lines=[_line(entry) for entry in page_of_log.entries],
        older=f"?{urlencode({**parameters, 'before': page_of_log.older})}"
        if page_of_log.older
        else "",
        newest=f"?{urlencode(parameters)}" if before else "",
        read_no_further=page_of_log.older is not None and len(page_of_log.entries) < _ON_A_PAGE,
        most_read=search.MOST_READ,
        complaint=complaint,
        is_off=not store.is_on(),
    )


@page("logs/<str:place>/", name="log_record", permission=VIEW)
@require_safe
def log_record(request: HttpRequest, place: str) -> HttpResponseBase:
    """Show a record with all its fields."""
    try:
        record = search.entry(place)
    except LogUnavailable:
        response = render(request, "admin/operations/base.html", "Log record", complaint=_AWAY)
        response.status_code = 503
        return response
    if record is None:
        raise Http404("There is no such record any more.")
    line = _line(record)
    texts = [(name, _text(value)) for name, value in record.fields.items() if name != "exception"]
    return render(
        request,
        "admin/operations/log_record.html",
        line.text[:100],
        line=line,
        fields=sorted(texts),
        exception=record.fields.get("exception", ""),
    )


def address_of(request_id: str) -> str:
    """Return the URL of the page with the records of a request."""
    return f"{reverse('admin:logs')}?{urlencode({'request_id': request_id})}"


def _line(entry: Entry) -> Line:
    record = entry.fields
    if record.get("logger") == "request":
        text = f"{record.get('method', '')} {record.get('path', '')}"
        details = f"{record.get('status', '')} in {record.get('ms', '?')} ms"
        if "error" in record:
            details += f", {_text(record.get('code', ''))}: {_text(record['error'])[:200]}"
    else:
        text = _text(record.get("event", ""))
        remaining = {name: value for name, value in record.items() if name not in _IN_THE_LINE}
        details = ", ".join(f"{name}={_text(value)[:80]}" for name, value in remaining.items())[
            :300
        ]
    return Line(
        entry.place,
        _time(record.get("timestamp")),
        _text(record.get("level", "")),
        _text(record.get("process", "")),
        _text(record.get("request_id", "")),
        text,
        details,
    )


def _time(value: object) -> str:
    try:
        time = parse_datetime(value) if isinstance(value, str) else None
    except ValueError:
        time = None
    return time.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] if time else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
