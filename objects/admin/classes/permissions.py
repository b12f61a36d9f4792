"""Who may do what with the objects of a class."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponseBase, HttpResponseRedirect

from backend.kernel.errors import ServiceError, TransactionConflict
from objects.admin.browser.fields import pretty
from objects.admin.classes import permission_form
from objects.admin.staff_access import Place, class_page
from objects.admin.values import read_json
from objects.core.access.class_permissions import ACCESSES, Action
from objects.service import classes, public_access


@class_page("permissions/", "permissions", subject="class", post="change")
def permissions(place: Place) -> HttpResponseBase:
    """The table of permissions, and the same as JSON; either can be saved."""
    error, posted = None, place.request.POST
    schema = place.table.schema
    form = permission_form.from_permissions(schema.permissions)
    text = pretty(schema.permissions.to_wire())
    if place.request.method == "POST":
        try:
            if posted.get("kind") == "json":
                text = posted.get("json", "")
                wire = read_json(text)
            else:
                form = permission_form.from_post(posted)
                wire = permission_form.to_wire(form)
            if posted.get("version") != str(place.table.version):
                raise TransactionConflict(
                    "The class has changed since you opened this page. Nothing was saved: look at"
                    " it again."
                )
            writer = place.writer("change", "class")
            classes.change(writer, place.class_name, {"classLevelPermissions": wire})
            messages.success(place.request, "The permissions are changed.")
            return HttpResponseRedirect(place.request.path)
        except ServiceError as refused:
            error = refused
    response = place.render(
        "permissions",
        f"{place.class_name}: permissions",
        form=form,
        text=text,
        version=place.table.version,
        user_fields=permission_form.suggestions(schema),
        public_actions=_public_actions(place),
        error=error,
    )
    response.status_code = error.status if error else 200
    return response


def _public_actions(place: Place) -> tuple[Action, ...]:
    return tuple(
        action
        for access in ACCESSES
        for action in public_access.public_actions(place.table, access)
    )
