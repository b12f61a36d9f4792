"""What an instance without data offers on the start page: first steps, and demo data."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from backend.kernel.errors import ServiceError
from backend.settings.conf import service_settings
from backend.site.model_admin import Panel, page, start_panel
from backend.site.staff import principal_for, require
from objects.admin import demo_data
from objects.admin.people.pages import note
from objects.admin.staff_access import class_permission, permission
from objects.definitions.models import ObjectClass
from objects.definitions.registry import model_tables

ADD: Final = (class_permission("add"), permission("add", None))
REMOVE: Final = (class_permission("delete"), permission("delete", None))


@start_panel
def first_steps(request: HttpRequest) -> Panel | None:
    """The first steps while there are no classes but those of the demo, for staff who may add
    classes. The keys are those of clients, which may add classes as these staff may."""
    if not request.user.has_perms(ADD):
        return None
    # Those of models come with the deployment's code.
    own = ObjectClass.objects.exclude(name__startswith="_").exclude(name__in=model_tables())
    names = set(own.order_by("name").values_list("name", flat=True)[: len(demo_data.CLASSES) + 1])
    if names - demo_data.CLASSES.keys():
        return None
    context: dict[str, Any] = {
        "has_demo": bool(names),
        "may_remove": request.user.has_perms(REMOVE),
        "demo_classes": sorted(names),
        "may_see_functions": request.user.has_perm("functions.view_function"),
        "app_id": service_settings.APP_ID,
        "javascript_key": service_settings.JAVASCRIPT_KEY,
        "rest_key": service_settings.REST_API_KEY,
        "url": f"{service_settings.PUBLIC_URL}{service_settings.MOUNT_PATH}",
    }
    return Panel("admin/newcomers.html", context, position=10)


@page("demo-data/", name="demo_data", permission=class_permission("view"))
@require_POST
def change_demo_data(request: HttpRequest) -> HttpResponseBase:
    """Add the demo data, or remove their classes with all objects (``remove``)."""
    removes = "remove" in request.POST
    require(request, *(REMOVE if removes else ADD))
    needed = class_permission("delete" if removes else "add")
    principal = principal_for(request.user, needed)
    note(request, "remove demo data" if removes else "add demo data")
    try:
        if removes:
            demo_data.remove(principal)
            messages.success(request, "The demo data are removed.")
        else:
            demo_data.add(principal)
            messages.success(request, "The demo data are there: see the classes in the sidebar.")
    except ServiceError as error:
        messages.error(request, error.message)
    return HttpResponseRedirect(reverse("admin:index"))
