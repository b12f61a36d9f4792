"""Classes that are open to the public: their list on the start page, and a form to close them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect

from backend.kernel.errors import InvalidJSON
from backend.settings.conf import service_settings
from backend.site.model_admin import Panel, start_panel
from objects.admin.staff_access import Place, class_page, class_permission
from objects.core.access.class_permissions import ACCESSES
from objects.service import public_access

_CLOSED_TO: Final[Mapping[str, str]] = {
    "authenticated": "Only logged-in users may {} objects of {} now.",
    "closed": "Only the master key, and whom the permissions name, may {} objects of {} now.",
}


@start_panel
def open_classes(request: HttpRequest) -> Panel | None:
    """The open classes and exposed fields, for staff who may see classes."""
    if not request.user.has_perm(class_permission("view")):
        return None
    listed, exposed = public_access.open_classes(), public_access.exposed_fields()
    if not (listed or exposed):
        return None
    context = {
        "classes": listed,
        "exposed": exposed,
        "openness": service_settings.CLASS_PERMISSIONS_DEFAULT,
        "may_close": request.user.has_perm(class_permission("change")),
    }
    return Panel("admin/data/open_classes.html", context)


@class_page("close/", "close", subject="class", post="change")
def close(place: Place) -> HttpResponseBase:
    """Ask for confirmation, and close reading or writing of the class to the public."""
    if place.request.method == "POST":
        posted = place.request.POST
        to = posted.get("to", "")
        if to not in _CLOSED_TO:
            raise InvalidJSON(f"to: expected one of {', '.join(_CLOSED_TO)}.")
        access = next((each for each in ACCESSES if each == posted.get("access", "write")), None)
        if access is None:
            raise InvalidJSON(f"access: expected one of {', '.join(ACCESSES)}.")
        writer = place.writer("change", "class")
        to_users = to == "authenticated"
        public_access.close_to_public(writer, place.class_name, access, to_users=to_users)
        messages.success(place.request, _CLOSED_TO[to].format(access, place.class_name))
        return HttpResponseRedirect(place.url("permissions"))
    place.require("change", "class")
    return place.render(
        "close",
        f"Close {place.class_name} to the public",
        accesses=[
            (access, actions)
            for access in ACCESSES
            if (actions := public_access.public_actions(place.table, access))
        ],
    )
