"""The list of classes with their sizes, and the form that makes one."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet, Value
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Json
from backend.settings.conf import service_settings
from backend.site.model_admin import ReadOnlyModelAdmin, render
from backend.site.staff import principal_for
from objects.admin.class_sizes import with_statistics
from objects.admin.staff_access import class_permission
from objects.core.access.class_permissions import ACTIONS, Access
from objects.core.names import check_class_name
from objects.definitions import registry
from objects.definitions.models import ObjectClass
from objects.service import classes, public_access

_BEGINNINGS: Final[dict[str, tuple[str, dict[str, Json]]]] = {
    "users": (
        "Users who are logged in may do everything",
        {"requiresAuthentication": True},
    ),
    "everybody": ("Everybody may do everything (access lists of objects still hold)", {"*": True}),
    "nobody": ("Only the master key", {}),
}


@admin.register(ObjectClass)
class ObjectClassAdmin(ReadOnlyModelAdmin):
    """Classes. What is in one, and what one is, are the pages of the data browser."""

    section = "Data"
    icon = "database"
    position = 10
    also_at = ("/admin/data/",)
    list_display = (
        "class_link",
        "field_count",
        "public_reading",
        "public_writing",
        "objects",
        "size",
        "updated_at",
    )
    list_display_links = None
    search_fields = ("name",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(class_permission("add")))

    def get_queryset(self, request: HttpRequest) -> QuerySet[ObjectClass]:
        may_close = request.user.has_perm(class_permission("change"))
        link = Value("data_close" if may_close else "data_permissions")
        return with_statistics(super().get_queryset(request)).annotate(public_link=link)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        for _ in registry.all_classes():
            pass  # classes of models are entered when they are first asked for
        return super().changelist_view(request, extra_context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        object_class = get_object_or_404(ObjectClass, pk=object_id if object_id.isdecimal() else 0)
        return HttpResponseRedirect(reverse("admin:data_fields", args=(object_class.name,)))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        error = None
        name, beginning = request.POST.get("name", "").strip(), request.POST.get("beginning")
        if request.method == "POST":
            try:
                create_class(request, name, beginning or "")
            except ServiceError as refused:
                error = refused
            else:
                messages.success(request, f"The class {name} is there.")
                return HttpResponseRedirect(reverse("admin:data_fields", args=(name,)))
        beginnings = [(key, text) for key, (text, _) in _BEGINNINGS.items()]
        response = render(
            request,
            "admin/data/create_class.html",
            "Create a class",
            error=error,
            name=name,
            beginning=beginning or _usual_beginning(),
            beginnings=beginnings,
        )
        response.status_code = error.status if error else 200
        return response

    @admin.display(description="class", ordering="name")
    def class_link(self, obj: ObjectClass) -> SafeString | str:
        return format_html(
            '<a class="sv-strong" href="{}">{}</a>',
            reverse("admin:data_objects", args=(obj.name,)),
            obj.name,
        )

    @admin.display(description="fields")
    def field_count(self, obj: ObjectClass) -> SafeString:
        table = registry.find(check_class_name(obj.name))
        count = len(table.schema.fields) if table else 0
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:data_fields", args=(obj.name,)), count
        )

    @admin.display(description="public may read")
    def public_reading(self, obj: Any) -> SafeString | str:
        return self._public(obj, "read")

    @admin.display(description="public may write")
    def public_writing(self, obj: Any) -> SafeString | str:
        return self._public(obj, "write")

    def _public(self, obj: Any, access: Access) -> SafeString | str:
        table = registry.find(obj.name)
        actions = public_access.public_actions(table, access) if table else ()
        if not actions:
            return "no"
        return format_html(
            '<a class="sv-strong" href="{}">{}</a>',
            reverse(f"admin:{obj.public_link}", args=(obj.name,)),
            ", ".join(actions),
        )

    @admin.display(description="objects (estimate)", ordering="object_estimate")
    def objects(self, obj: Any) -> str:
        count = -1 if obj.object_estimate is None else int(obj.object_estimate)
        return "not known yet" if count < 0 else f"{count:,}"

    @admin.display(description="size with indexes", ordering="total_size")
    def size(self, obj: Any) -> str:
        return filesizeformat(obj.total_size)


def _usual_beginning() -> str:
    return "nobody" if service_settings.CLASS_PERMISSIONS_DEFAULT == "closed" else "users"


def create_class(request: HttpRequest, name: str, beginning: str) -> None:
    """Create a class through the object service. Raises ``ServiceError``."""
    _, rule = _BEGINNINGS.get(beginning, _BEGINNINGS["nobody"])
    rules: dict[str, Json] = {action: dict(rule) for action in ACTIONS}
    principal = principal_for(request.user, class_permission("add"))
    classes.create(principal, check_class_name(name), {"classLevelPermissions": rules})
