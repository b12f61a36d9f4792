"""The switch of maintenance mode, and the banner while it is on."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from backend.site.model_admin import BannerLevel, banner, page, render
from backend.site.staff import require
from objects.admin.people.pages import note
from objects.database import maintenance
from objects.database.maintenance import WritersLeft

CHANGE: Final = "backend.change_maintenance"
_PATIENCE = 20  # seconds that a page waits for writes that began before


@banner
def maintenance_banner(request: HttpRequest) -> tuple[BannerLevel, str] | None:
    """Return the banner for all pages that announces maintenance mode."""
    state = maintenance.state()
    if state is None:
        return None
    chain = " The chain is paused, too." if state.chain_paused else ""
    return "warning", f"Maintenance mode is on: nothing is written.{chain} “{state.message}”"


@page(
    "maintenance/",
    name="maintenance",
    permission="backend.view_maintenance",
    title="Maintenance",
    section="Operations",
    icon="construction",
    position=40,
)
def switch(request: HttpRequest) -> HttpResponseBase:
    """Show the current mode, with the switch for staff who have the permission."""
    complaint = ""
    if request.method == "POST":
        require(request, CHANGE)
        try:
            _switch(request)
            return HttpResponseRedirect(reverse("admin:maintenance"))
        except (ValueError, WritersLeft) as error:
            complaint = str(error)[:1].upper() + str(error)[1:]
    return render(
        request,
        "admin/operations/maintenance.html",
        "Maintenance mode",
        state=maintenance.state(),
        may_switch=request.user.has_perm(CHANGE),
        usual=maintenance.DEFAULT_MESSAGE,
        longest=maintenance.LONGEST_MESSAGE,
        given=request.POST.get("message", ""),
        complaint=complaint,
    )


def _switch(request: HttpRequest) -> None:
    if "off" in request.POST:
        maintenance.off()
        messages.success(request, "Switched off: writes are taken again.")
        word = "off"
    else:
        text = request.POST.get("message", "")
        maintenance.on(text, pause_chain="pause_chain" in request.POST, limit=_PATIENCE)
        messages.success(request, "Switched on: no write is under way any more.")
        word = "on"
    note(request, f"maintenance {word}")
