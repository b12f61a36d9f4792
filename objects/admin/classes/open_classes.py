"""Classes with public write access: their list on the start page, and a form to close them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect

from backend.kernel.errors import InvalidJSON
from backend.settings.conf import service_settings
from backend.site.model_admin import Panel, start_panel
from objects.admin.staff_access import Place, class_page, class_permission
from objects.service import classes

_CLOSED_TO = {
    "authenticated": "Only logged-in users may write objects of {} now.",
    "closed": "Only the master key, and whom the permissions name, may write objects of {} now.",
}


@start_panel
def open_classes(request: HttpRequest) -> Panel | None:
    """The open classes, for staff who may see classes."""
    if not request.user.has_perm(class_permission("view")):
        return None
    listed = classes.open_classes()
    if not listed:
        return None
    context = {
        "classes": listed,
        "openness": service_settings.CLASS_PERMISSIONS_DEFAULT,
        "may_close": request.user.has_perm(class_permission("change")),
    }
    return Panel("admin/data/open_classes.html", context)


@class_page("close/", "close", subject="class", post="change")
def close(place: Place) -> HttpResponseBase:
    """Ask for confirmation, and close the class to the public."""
    if place.request.method == "POST":
        to = place.request.POST.get("to", "")
        if to not in _CLOSED_TO:
            raise InvalidJSON(f"to: expected one of {', '.join(_CLOSED_TO)}.")
        writer = place.writer("change", "class")
        classes.close_to_public(writer, place.class_name, to_users=to == "authenticated")
        messages.success(place.request, _CLOSED_TO[to].format(place.class_name))
        return HttpResponseRedirect(place.url("permissions"))
    place.require("change", "class")
    return place.render(
        "close",
        f"Close {place.class_name} to the public",
        actions=classes.public_writes(place.table),
    )
