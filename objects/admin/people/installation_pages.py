"""Installations: apps on devices."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Wire
from backend.site.model_admin import page, render
from objects.admin.browser.pagination import PageOfRows
from objects.admin.people.pages import LONGEST, asked_page, time_of
from objects.core.names import INSTALLATION, OBJECT_ID, FieldName
from objects.core.query.tree import AnyOf, Equals, Everything, Query

VIEW: Final = "objects.view_installation"
_SHOWN_OF_A_TOKEN = 8  # characters


@page(
    "people/installations/",
    name="people_installations",
    permission=VIEW,
    title="Installations",
    section="People",
    icon="devices",
    position=40,
)
@require_safe
def installations(request: HttpRequest) -> HttpResponseBase:
    """The newest installations, or the one with an id or a device token."""
    text = request.GET.get("q", "").strip()[:LONGEST]
    where: Query = Everything()
    if text:
        names = (OBJECT_ID, FieldName("installationId"), FieldName("deviceToken"))
        parts = [Equals((name,), value) for name in names for value in {text, text.lower()}]
        where = AnyOf(tuple(parts))
    complaint, rows = "", PageOfRows([], None, None)
    try:
        rows = asked_page(request, INSTALLATION, where)
    except ServiceError as error:
        complaint = error.message
    return render(
        request,
        "admin/people/installations.html",
        "Installations",
        installations=[_row(value) for value in rows.rows],
        newer=rows.before.encode() if rows.before else "",
        older=rows.after.encode() if rows.after else "",
        text=text,
        complaint=complaint,
    )


def _row(installation: Wire) -> dict[str, Any]:
    token = str(installation.get("deviceToken") or "")
    channels = installation.get("channels")
    return {
        "id": installation["objectId"],
        "installation": installation.get("installationId") or "",
        "type": installation.get("deviceType") or "",
        # It is what notifications are sent to: the whole one is on the object's own page.
        "token": f"{token[:_SHOWN_OF_A_TOKEN]}…" if len(token) > _SHOWN_OF_A_TOKEN else token,
        "app": " ".join(
            str(installation[name]) for name in ("appName", "appVersion") if installation.get(name)
        ),
        "channels": ", ".join(map(str, channels)) if isinstance(channels, list) else "",
        "updated": time_of(installation["updatedAt"]),
    }
