"""What a class is: its fields, and removing what it holds or all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from backend.kernel.errors import (
    InvalidJSON,
    InvalidKeyName,
    InvalidSchemaOperation,
    ServiceError,
)
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.admin.browser.fields import pretty
from objects.admin.class_sizes import estimate
from objects.admin.staff_access import Place, class_page
from objects.admin.values import read_json
from objects.core.names import FieldName, is_field_name
from objects.core.schema.definition import DEFAULT_FIELDS, SYSTEM_FIELDS, FieldType
from objects.core.values import FieldKind
from objects.definitions import registry
from objects.service import classes

_KINDS: Final = sorted(get_args(FieldKind))


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field as the list shows it."""

    name: str
    field: FieldType
    default: str
    is_fixed: bool
    is_from_clients: bool = False


@class_page("fields/", "fields", subject="class", post="change")
def fields(place: Place) -> HttpResponseBase:
    """The fields, and the form that adds one."""
    error, form = None, place.request.POST
    if place.request.method == "POST":
        name = form.get("name", "").strip()
        try:
            if name in place.table.schema.fields or name in DEFAULT_FIELDS or name == "ACL":
                raise InvalidSchemaOperation(f"There is a field {shown(name)} already.")
            _change(place, {"fields": {name: _wire(form)}})
            messages.success(place.request, f"The field {name} is there.")
            return HttpResponseRedirect(place.request.path)
        except ServiceError as refused:
            error = refused
    schema = place.table.schema
    rows = [FieldRow(name, field, "", True) for name, field in DEFAULT_FIELDS.items()]
    rows += [_row(place, name) for name in sorted(schema.fields)]
    response = place.render(
        "fields",
        f"{place.class_name}: fields",
        rows=rows,
        kinds=_KINDS,
        classes=[table.class_name for table in registry.all_classes()],
        form=form,
        error=error,
        wire=pretty(schema.to_wire()),
    )
    response.status_code = error.status if error else 200
    return response


def _row(place: Place, name: FieldName) -> FieldRow:
    field = place.table.schema.fields[name]
    default = "" if field.default is None else pretty(field.default)
    schema = place.table.schema
    is_fixed = name in SYSTEM_FIELDS.get(place.class_name, {})
    return FieldRow(name, field, default, is_fixed, name in schema.client_fields)


def _wire(form: dict[str, str]) -> Json:
    wire: dict[str, Json] = {"type": form.get("type", "")}
    if wire["type"] in ("Pointer", "Relation"):
        wire["targetClass"] = form.get("target", "").strip()
    return wire | _options(form)


def _options(form: dict[str, str]) -> dict[str, Json]:
    options: dict[str, Json] = {}
    for name in ("required", "unique"):
        if name in form:
            options[name] = True
    default = form.get("default", "").strip()
    if default:
        try:
            options["defaultValue"] = read_json(default)
        except ServiceError:
            raise InvalidJSON(
                'The default must be JSON: 5, true, or "text" in quotation marks.'
            ) from None
    return options


def _change(place: Place, body: Json) -> None:
    classes.change(place.writer("change", "class"), place.class_name, body)


@class_page("fields/<str:name>/", "field", subject="class", post="change")
def field_page(place: Place, name: str) -> HttpResponseBase:
    """One field: its options, deleting it, and another type for one that clients made."""
    place.require("change", "class")
    if not is_field_name(name) or name not in place.table.schema.fields:
        raise InvalidKeyName(f"There is no field {shown(name)}.", status=404)
    row, error, form = _row(place, name), None, place.request.POST
    if place.request.method == "POST":
        try:
            if "delete" in form:
                _confirm(form.get("typed", ""), name)
                _change(place, {"fields": {name: {"__op": "Delete"}}})
                messages.success(place.request, f"The field {name} is deleted.")
            elif "retype" in form:
                _confirm(form.get("typed", ""), name)
                _change(place, {"fields": {name: _wire(form)}})
                messages.success(place.request, f"The field {name} has the new type.")
            else:
                wire = {"type": row.field.kind, **_options(form)}
                if row.field.target_class:
                    wire["targetClass"] = row.field.target_class
                _change(place, {"fields": {name: wire}})
                messages.success(place.request, f"The field {name} is changed.")
            return HttpResponseRedirect(place.url("fields"))
        except ServiceError as refused:
            error = refused
    title = f"{place.class_name}: the field {name}"
    response = place.render("field", title, row=row, form=form, kinds=_KINDS, error=error)
    response.status_code = error.status if error else 200
    return response


def _confirm(typed: str, name: str) -> None:
    if typed.strip() != name:
        raise InvalidSchemaOperation(f"Type {name} to confirm.")


@class_page("remove/", "remove", subject="class", post="delete")
def remove(place: Place) -> HttpResponseBase:
    """Purging a class, and deleting it."""
    place.require("delete", "class")
    error, form = None, place.request.POST
    if place.request.method == "POST":
        try:
            return _removed(place, form.get("what", ""), form.get("typed", ""))
        except ServiceError as refused:
            error = refused
    response: HttpResponse = place.render(
        "remove",
        f"{place.class_name}: remove",
        estimate=estimate(place.table.class_id),
        is_own_table=not place.table.is_partition,
        error=error,
    )
    response.status_code = error.status if error else 200
    return response


def _removed(place: Place, what: str, typed: str) -> HttpResponseBase:
    name, writer = place.class_name, place.writer("delete", "class")
    _confirm(typed, name)
    if what == "objects":
        place.require("delete")
        classes.purge(writer, name)
        messages.success(place.request, f"All objects of {name} are deleted.")
        return HttpResponseRedirect(place.url("objects"))
    if what != "class" or not place.table.is_partition:
        raise InvalidSchemaOperation(f"The class {name} belongs to the service.")
    classes.delete(writer, name)
    messages.success(place.request, f"The class {name} is deleted.")
    return HttpResponseRedirect(reverse("admin:objects_objectclass_changelist"))
