"""The advisor: what the checks of ``doctor`` report, as a page with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from backend.logs.setup import get_logger
from backend.overview import checkups
from backend.overview.checkups import Entry
from backend.overview.remedies import OPERATE, PAGES, REMEDIES, Remedy
from backend.site.model_admin import page, render
from backend.site.staff import require

_TITLES: Final = {
    "fail": ("Failures", "Something doesn't work, or is dangerous as it is."),
    "warn": ("Warnings", "The service works, and something about it should be changed."),
    "skipped": ("Not checked", "These checks need others that failed, or there was no time left."),
    "ok": ("In order", "Nothing has to be done."),
}

log = get_logger("admin")


@dataclass(frozen=True, slots=True)
class Row:
    """A finding with what the staff user may do about it."""

    entry: Entry
    remedy: Remedy | None
    url: str
    url_title: str


@page(
    "advisor/",
    name="advisor",
    permission="backend.view_checkup",
    title="Advisor",
    section="Operations",
    icon="stethoscope",
    position=5,
)
@require_safe
def advisor(request: HttpRequest) -> HttpResponseBase:
    """Show the findings by severity."""
    report = checkups.latest()
    groups = [
        (level, *_TITLES[level], [_row(request, entry) for entry in report.of_level(level)])
        for level in checkups.LEVELS
    ]
    return render(
        request,
        "admin/overview/advisor.html",
        "Advisor",
        report=report,
        groups=groups,
        may_check=request.user.has_perm(OPERATE),
    )


def _row(request: HttpRequest, entry: Entry) -> Row:
    is_problem = entry.finding.level in ("fail", "warn")
    remedy = REMEDIES.get(entry.check) if is_problem else None
    if remedy and not (request.user.has_perm(remedy.permission) and remedy.is_offered()):
        remedy = None
    name, title = PAGES.get(entry.check, ("", "")) if is_problem else ("", "")
    return Row(entry, remedy, reverse(f"admin:{name}") if name else "", title)


@page("advisor/check/", name="advisor_check", permission=OPERATE)
@require_POST
def check(request: HttpRequest) -> HttpResponseBase:
    """Have the checks run in the background."""
    if checkups.start():
        messages.info(request, "The checks are running. Their findings are here in a moment.")
    else:
        messages.info(request, "The checks are running already, or have just been run.")
    return HttpResponseRedirect(reverse("admin:advisor"))


@page("advisor/remedies/<str:name>/", name="advisor_remedy", permission="backend.view_checkup")
@require_POST
def apply_remedy(request: HttpRequest, name: str) -> HttpResponseBase:
    """Do what the service can do about the findings of a check."""
    remedy = REMEDIES.get(name)
    if remedy is None or not remedy.is_offered():
        raise Http404
    require(request, remedy.permission)
    remedy.run()
    log.info("staff write", staff=request.user.get_username(), action=f"remedy: {name}")
    messages.success(request, remedy.done)
    return HttpResponseRedirect(reverse("admin:advisor"))
