"""The start page of the admin: how the service is doing, in numbers, charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import date_format
from django.views.decorators.http import require_safe

from backend import __version__
from backend.backups import history
from backend.kernel.texts.counted import counted
from backend.kernel.texts.sizes import readable_size
from backend.overview import checkups, figures, live
from backend.overview.durations import age, duration
from backend.overview.figures import Figures
from backend.overview.ranges import RANGES, Range
from backend.overview.reading import Part, Parts
from backend.overview.storage import RESPONSES
from backend.site.model_admin import Panel, page, start_panel
from objects.admin.staff_access import class_permission

VIEW: Final = "backend.view_minute"
_MANY_ERRORS: Final = 0.01  # of all requests
_LONG_WAIT: Final = 60.0  # seconds in a queue
_FULL, _NEARLY_FULL = 0.95, 0.85  # of a disk
_FULL_SOON: Final = timedelta(days=30)
_UNKNOWN: Final = "-"


@dataclass(frozen=True, slots=True)
class Number:
    """A key number. ``tone`` is ``bad``, ``warning`` or empty; ``url`` is that of its list, empty
    for staff who may not see it. ``lines`` are those of a small chart."""

    title: str
    value: str
    note: str = ""
    url: str = ""
    tone: str = ""
    lines: Sequence[str] = ()


class _Links:
    """Addresses of pages that a staff user may see."""

    def __init__(self, request: HttpRequest) -> None:
        self._user = request.user

    def to(self, name: str, permission: str, **query: str) -> str:
        """Return the address of a page, or an empty text for staff without the permission."""
        if not self._user.has_perm(permission):
            return ""
        text = urlencode(query)
        return reverse(f"admin:{name}") + (f"?{text}" if text else "")


@start_panel
def panel(request: HttpRequest) -> Panel | None:
    """Return the figures, for staff who may see them, in place of the menu."""
    if not request.user.has_perm(VIEW):
        return None
    return Panel("admin/overview/panel.html", _context(request), position=20, replaces_menu=True)


@page("overview/", name="overview", permission=VIEW)
@require_safe
def fragment(request: HttpRequest) -> HttpResponseBase:
    """Return the figures alone, for the start page to replace its own."""
    return TemplateResponse(request, "admin/overview/figures.html", {"panel": _context(request)})


def _context(request: HttpRequest) -> dict[str, Any]:
    time_range = RANGES.get(request.GET.get("range", ""), RANGES["hour"])
    now = datetime.now(UTC)
    since = now - time_range.span
    links, parts = _Links(request), Parts()
    stored = parts.read("figures", lambda: figures.read(time_range, now))
    moment = parts.read("live figures", lambda: live.moment(since, now))
    networks = parts.read("networks", lambda: live.networks(since))
    checkup = parts.read("advisor", checkups.latest)
    numbers = [
        *_of_requests(stored, time_range, links),
        *_of_users(stored, moment, links),
        *_of_failures(stored, links),
        *_of_moment(moment, stored, links),
        _of_disk(parts, stored, now, links),
        _of_backups(parts, links),
        _of_checkup(checkup, links),
    ]
    if request.user.has_perm("chain.view_blockchain") and networks.value:
        numbers.append(_of_networks(networks, links))
    else:
        networks = Part(None)
    charts = _charts(stored, has_networks=networks.value is not None)
    return {
        "range": time_range,
        "ranges": RANGES.values(),
        "read_at": now,
        "version": __version__,
        "numbers": numbers,
        "charts": [chart for chart in charts if not chart.is_empty],
        "empty_charts": [chart.title for chart in charts if chart.is_empty],
        "stored": stored,
        "moment": moment,
        "database_queues": parts.read("queues of the database", live.database_queues),
        "networks": networks,
        "networks_url": links.to("networks", "chain.view_blockchain"),
        "processes_url": links.to("processes", "backend.view_logrecord"),
        "slow": parts.read("slow queries", lambda: live.slow_queries(since))
        if request.user.has_perm(class_permission("view"))
        else None,
    }


def _charts(stored: Part, *, has_networks: bool) -> list[figures.Chart]:
    if stored.value is None:
        return []
    return figures.charts(stored.value, has_networks=has_networks)


# -- Numbers ---------------------------------------------------------------------------------------


def _of_requests(stored: Part, time_range: Range, links: _Links) -> list[Number]:
    logs = links.to("logs", "backend.view_logrecord")
    errors_url = links.to("logs", "backend.view_logrecord", status="5xx")
    titles = ("Requests a minute", "Duration, p95", "Errors")
    values: Figures | None = stored.value
    total = None if values is None else values.total(*RESPONSES)
    if values is None or total is None:
        urls = (logs, logs, errors_url)
        return [Number(title, _UNKNOWN, url=url) for title, url in zip(titles, urls, strict=True)]
    failed, rejected = values.total("failed") or 0, values.total("rejected") or 0
    half, most = values.percentile(0.5), values.percentile(0.95)
    share = failed / total if total else 0.0
    tone = "bad" if share > _MANY_ERRORS else "warning" if failed else ""
    return [
        Number(
            titles[0],
            _rate(total, values.minutes),
            f"{total:,} in the {time_range.title.lower()}",
            logs,
            lines=figures.sparkline(values.rate(*RESPONSES)),
        ),
        Number(
            titles[1],
            _UNKNOWN if most is None else duration(most),
            "" if half is None else f"p50 {duration(half)}",
            logs,
            lines=figures.sparkline(values.percentiles(0.95)),
        ),
        Number(
            titles[2],
            f"{failed:,}",
            f"{share:.1%} of all requests; {rejected:,} were rejected (4xx)",
            errors_url,
            tone,
            figures.sparkline(values.rate("failed")),
        ),
    ]


def _rate(total: int, minutes: int) -> str:
    rate = total / max(1, minutes)
    return f"{rate:,.0f}" if rate >= 10 or rate == int(rate) else f"{rate:.1f}"


def _of_users(stored: Part, moment: Part, links: _Links) -> list[Number]:
    users = links.to("people_users", "objects.view_user")
    values: Figures | None = stored.value
    number = None if values is None else values.total("sign_ups")
    lines = figures.sparkline(values.sums("sign_ups")) if values is not None else []
    active = _UNKNOWN if moment.value is None else f"{moment.value.active_users:,}"
    return [
        Number("Active users", active, "who sent requests with a session", users),
        Number("Sign-ups", _UNKNOWN if number is None else f"{number:,}", "", users, "", lines),
    ]


def _of_failures(stored: Part, links: _Links) -> list[Number]:
    values: Figures | None = stored.value
    numbers = []
    for title, column, url in (
        (
            "Failed jobs",
            "failed_jobs",
            links.to("functions_jobstatus_changelist", "functions.view_jobstatus", status="failed"),
        ),
        (
            "Failed webhooks",
            "failed_deliveries",
            links.to(
                "functions_delivery_changelist", "functions.view_delivery", state__exact="dead"
            ),
        ),
        ("Failed pushes", "failed_pushes", links.to("pushes", "objects.view_push")),
    ):
        number = None if values is None else values.total(column)
        lines = figures.sparkline(values.sums(column)) if values is not None and number else []
        value = _UNKNOWN if number is None else f"{number:,}"
        numbers.append(Number(title, value, "", url, "bad" if number else "", lines))
    return numbers


def _of_moment(moment: Part, stored: Part, links: _Links) -> list[Number]:
    processes = links.to("processes", "backend.view_logrecord")
    sockets_url = links.to("live", "chain.view_contractevent")
    if moment.value is None:
        return [
            Number("Waiting tasks", _UNKNOWN, moment.complaint, processes, "warning"),
            Number("Open sockets", _UNKNOWN, "", sockets_url),
        ]
    queues: list[live.Queue] = moment.value.queues
    waiting = sum(queue.tasks for queue in queues)
    longest = max((queue.seconds or 0.0 for queue in queues), default=0.0)
    values: Figures | None = stored.value
    lines = figures.sparkline(values.largest("sockets")) if values is not None else []
    return [
        Number(
            "Waiting tasks",
            f"{waiting:,}",
            f"the next one for {duration(longest)}" if longest >= 1 else "",
            processes,
            "warning" if longest > _LONG_WAIT else "",
        ),
        Number("Open sockets", f"{moment.value.sockets:,}", "", sockets_url, "", lines),
    ]


def _of_disk(parts: Parts, stored: Part, now: datetime, links: _Links) -> Number:
    url = links.to("advisor", "backend.view_checkup")
    values: Figures | None = stored.value
    used = None if values is None else values.latest("disk_used")
    total = None if values is None else values.latest("disk_total")
    if values is None or used is None or not total:
        return Number("Disk", _UNKNOWN, "", url)
    growth = parts.read("growth of the disk", lambda: figures.full_at(used, total, now))
    full: datetime | None = growth.value
    note = f"{readable_size(int(total - used))} left"
    if full is not None:
        note += f"; full on {date_format(full, 'j F Y')} if it grows as now"
    share = used / total
    is_bad = share > _FULL or (full is not None and full - now < _FULL_SOON)
    tone = "bad" if is_bad else "warning" if share > _NEARLY_FULL else ""
    return Number("Disk", f"{share:.0%}", note, url, tone)


def _of_backups(parts: Parts, links: _Links) -> Number:
    url = links.to("backend_backuprun_changelist", "backend.view_backuprun")
    read = parts.read("backups", history.state)
    if read.value is None:
        return Number("Last backup", _UNKNOWN, read.complaint, url, "warning")
    state: history.State = read.value
    if state.last is None:
        is_scheduled = state.interval is not None
        note = "none was made yet" if is_scheduled else "none are scheduled"
        return Number("Last backup", "none", note, url, "warning")
    value = "none" if state.last_good is None else age(state.last_good.started_at)
    if state.has_failed:
        return Number("Last backup", value, "the last one failed", url, "bad")
    size = None if state.last_good is None else state.last_good.size
    note = "" if size is None else readable_size(size)
    return Number("Last backup", value, note, url, "bad" if state.is_late else "")


def _of_checkup(checkup: Part, links: _Links) -> Number:
    url = links.to("advisor", "backend.view_checkup")
    report: checkups.Report | None = checkup.value
    if report is None or report.finished_at is None:
        return Number("Advisor", _UNKNOWN, "the checks haven't run yet", url)
    failures, warnings = len(report.of_level("fail")), len(report.of_level("warn"))
    return Number(
        "Advisor",
        f"{failures + warnings:,}",
        f"{counted(failures, 'failure')}, {counted(warnings, 'warning')}",
        url,
        "bad" if failures else "warning" if warnings else "",
    )


def _of_networks(networks: Part, links: _Links) -> Number:
    listed: list[live.Network] = networks.value
    active = [network for network in listed if network.is_active]
    blocks = [network.lag.blocks for network in active]
    lags = [number for number in blocks if number is not None]
    forks = sum(network.reorganisations for network in listed)
    return Number(
        "Chain lag",
        counted(max(lags), "block") if lags else _UNKNOWN,
        f"{counted(forks, 'reorganisation')} in {counted(len(listed), 'network')}",
        links.to("networks", "chain.view_blockchain"),
        "warning" if len(lags) < len(active) else "",
    )
