"""Log records of all processes: over time, filtered, followed, and one request in order."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from backend.logs import search, store
from backend.logs.chart import search_and_count
from backend.logs.filters import KINDS_OF_KEYS, LEVELS, METHODS, LogFilter
from backend.logs.search import Entry, LogUnavailable, Page
from backend.site.model_admin import page, render
from objects.admin.operations.log_chart import Picture, draw
from objects.admin.operations.log_lines import groups_of, line_of, links_of

VIEW: Final = "backend.view_logrecord"
PROCESSES: Final = ("web", "realtime", "worker", "jobs", "chain", "backfill", "beat", "manage")
PERIODS: Final = {
    "15m": ("Last 15 minutes", timedelta(minutes=15)),
    "1h": ("Last hour", timedelta(hours=1)),
    "6h": ("Last 6 hours", timedelta(hours=6)),
    "24h": ("Last 24 hours", timedelta(days=1)),
    "7d": ("Last 7 days", timedelta(days=7)),
}
ALL: Final = "all"
_DEFAULT_PERIOD: Final = "1h"
_STATUSES: Final = ("2xx", "3xx", "4xx", "5xx")
_ON_A_PAGE: Final = 100
_AWAY: Final = "Redis, which keeps the records, doesn't answer."
_LONGEST: Final = 200  # characters of a filter
_NAMES: Final = {
    **{field.name: field.name.replace("_", " ") for field in fields(LogFilter)},
    **{"class_name": "class", "object_id": "object", "level": "at least", "text": "text"},
}


class _BadTime(ValueError):
    """A time that can't be read; its text is for staff."""


@dataclass(frozen=True)
class Criteria:
    """Everything that the address of the page says."""

    filter: LogFilter
    period: str
    since: str
    until: str

    @classmethod
    def of(cls, request: HttpRequest) -> Criteria:
        """Return the criteria of a request. Records of one request are searched at any time."""

        def text(name: str) -> str:
            return request.GET.get(name, "").strip()[:_LONGEST]

        criteria = LogFilter(**{name: text(name) for name in _NAMES})
        period = text("period")
        if period not in PERIODS and period != ALL:
            period = ALL if criteria.request_id else _DEFAULT_PERIOD
        return cls(criteria, period, text("from"), text("until"))

    @property
    def parameters(self) -> dict[str, str]:
        """What the address needs, without what is the default."""
        parameters = self.filter.values
        if self.since or self.until:
            times = {"from": self.since, "until": self.until}
            return parameters | {name: value for name, value in times.items() if value}
        is_default = self.period == (ALL if self.filter.request_id else _DEFAULT_PERIOD)
        return parameters if is_default else {**parameters, "period": self.period}

    def address(self, **changes: str) -> str:
        """Return the query of the page with other parameters; an empty text removes one."""
        parameters = {**self.parameters, **changes}
        return f"?{urlencode({name: value for name, value in parameters.items() if value})}"

    def times(self, now: datetime) -> tuple[datetime, datetime]:
        """Return the period. Raises ``_BadTime``, and ``LogUnavailable`` for all that is stored."""
        until = min(_time("until", self.until), now) if self.until else now
        if self.since:
            since = _time("from", self.since)
        elif self.period in PERIODS and not self.until:
            since = now - PERIODS[self.period][1]
        else:
            oldest = search.oldest()
            milliseconds = search.milliseconds_of(oldest) if oldest else 0
            since = datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else until
        return min(since, until), until


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
    """Show the matching records, newest first, and how many there were over time."""
    criteria = Criteria.of(request)
    before = request.GET.get("before", "")
    now = datetime.now(UTC)
    results, newest, complaint = Page([], None), "", ""
    since = until = now
    picture: Picture | None = None
    if before and not search.is_place(before):
        complaint = "There is no such page."
    else:
        try:
            since, until = criteria.times(now)
            newest = search.newest()
            if before:
                # The chart is on the first page: counting the period again would take as long.
                results = search.search(
                    criteria.filter, before=before, since=since, until=until, limit=_ON_A_PAGE
                )
            else:
                results, chart = search_and_count(criteria.filter, since, until, limit=_ON_A_PAGE)
                picture = draw(chart, criteria.address)
        except LogUnavailable:
            complaint = _AWAY
        except _BadTime as error:
            complaint = str(error)
    is_open = not (before or criteria.until or complaint)
    return render(
        request,
        "admin/operations/logs.html",
        "Logs",
        criteria=criteria,
        applied=criteria.filter,
        is_detailed=bool(_MORE & criteria.filter.values.keys())
        or bool(criteria.since or criteria.until),
        since=_local(since) if criteria.since and not complaint else criteria.since,
        until=_local(until) if criteria.until and not complaint else criteria.until,
        chips=_chips(criteria),
        statuses=_STATUSES,
        levels=LEVELS,
        methods=METHODS,
        keys=KINDS_OF_KEYS,
        processes=PROCESSES,
        periods=[(name, title) for name, (title, _) in PERIODS.items()] + [(ALL, "All stored")],
        picture=picture,
        lines=[line_of(entry) for entry in results.entries],
        older=criteria.address(before=results.older) if results.older else "",
        newest_page=criteria.address() if before else "",
        everything=criteria.address(**{"period": ALL, "from": "", "until": ""}),
        read_no_further=results.older is not None and len(results.entries) < _ON_A_PAGE,
        read_to=_moment(results.older),
        follow=f"{reverse('admin:new_log_records')}{criteria.address(after=newest)}"
        if is_open
        else "",
        complaint=complaint,
        is_off=not store.is_on(),
    )


@page("logs/new/", name="new_log_records", permission=VIEW)
@require_safe
def new_records(request: HttpRequest) -> HttpResponseBase:
    """The rows of matching records after the place ``after``, for the page that follows the log."""
    after = request.GET.get("after", "")
    if not search.is_place(after):
        raise Http404("There is no such place in the log.")
    try:
        part = search.newer(Criteria.of(request).filter, after, limit=_ON_A_PAGE)
    except LogUnavailable:
        return TemplateResponse(request, "admin/operations/log_rows.html", {}, status=503)
    context = {
        "lines": [line_of(entry) for entry in reversed(part.entries)],
        "newest": part.end,
    }
    return TemplateResponse(request, "admin/operations/new_log_rows.html", context)


@page("logs/<str:place>/", name="log_record", permission=VIEW)
@require_safe
def log_record(request: HttpRequest, place: str) -> HttpResponseBase:
    """Show a record with all its fields, and everything that its request has caused, in order."""
    try:
        record = search.entry(place)
        request_id = _request_id(record)
        part = search.of_request(request_id, place) if request_id else None
    except LogUnavailable:
        response = render(request, "admin/operations/base.html", "Log record", complaint=_AWAY)
        response.status_code = 503
        return response
    if record is None:
        raise Http404("There is no such record any more.")
    line = line_of(record)
    entries = part.entries if part is not None else []
    return render(
        request,
        "admin/operations/log_record.html",
        line.text[:100],
        line=line,
        error=record.fields.get("error", "") if line.kind in ("4xx", "5xx") else "",
        code=record.fields.get("code", ""),
        links=links_of(request, record),
        groups=groups_of(record),
        exception=record.fields.get("exception", ""),
        steps=_steps(entries),
        processes=len({str(entry.fields.get("process")) for entry in entries}),
        read_to=_moment(part.end) if part is not None else "",
        all_address=address_of(request_id) if request_id else "",
    )


def address_of(request_id: str) -> str:
    """Return the URL of the page with the records of a request."""
    return f"{reverse('admin:logs')}?{urlencode({'request_id': request_id})}"


_MORE: Final = frozenset(_NAMES) - {"text", "status", "level"}
"""Filters that the page shows only when they are opened, or used."""


def _chips(criteria: Criteria) -> list[tuple[str, str, str]]:
    """Return the filters in use: name, value, and the address of the page without it."""
    chips = [
        (_NAMES[name], value, criteria.address(**{name: ""}))
        for name, value in criteria.filter.values.items()
    ]
    for name, value in (("from", criteria.since), ("until", criteria.until)):
        if value:
            chips.append((name, value, criteria.address(**{name: ""})))
    return chips


def _steps(entries: list[Entry]) -> list[tuple[Any, str]]:
    """Return the lines of a request with the time since the first one."""
    lines = [line_of(entry) for entry in entries]
    first = next((line.moment for line in lines if line.moment), "")
    return [(line, _since(first, line.moment)) for line in lines]


def _since(first: str, moment: str) -> str:
    if not first or not moment:
        return ""
    seconds = (datetime.fromisoformat(moment) - datetime.fromisoformat(first)).total_seconds()
    return f"+{seconds * 1000:.0f} ms" if seconds < 10 else f"+{seconds:.0f} s"


def _request_id(record: Entry | None) -> str:
    value = record.fields.get("request_id") if record is not None else None
    return value if isinstance(value, str) else ""


def _time(name: str, text: str) -> datetime:
    """Read a time; without an offset it is in UTC. Raises ``_BadTime``."""
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _BadTime(
            f"{name}: “{text}” is no time. Enter one such as 2026-01-31T18:00 (UTC), or with an"
            " offset: 2026-01-31T18:00+01:00."
        ) from None


def _local(time: datetime) -> str:
    """Return a time as the browser's field for times takes it, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S")


def _moment(place: str | None) -> str:
    """Return the time of a place in the log in ISO 8601, or an empty text."""
    if not place:
        return ""
    time = datetime.fromtimestamp(search.milliseconds_of(place) / 1000, UTC)
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
