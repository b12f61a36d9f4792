"""One object: its fields, its access list, its JSON; new objects; deleting an object.

The form contains the state that it shows (``updatedAt``). If the object has changed since, nothing
is saved, and the page shows the entered values next to the stored ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect

from backend.kernel.errors import InvalidJSON, OperationForbidden, ServiceError
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from backend.site.staff import principal_for
from objects import service
from objects.admin.browser import acl_form
from objects.admin.browser import fields as object_fields
from objects.admin.browser.acl_form import AclForm
from objects.admin.browser.cells import Cell, object_address, value_cell
from objects.admin.browser.fields import DELETE, Input, pretty
from objects.admin.browser.labels import label
from objects.admin.browser.references import as_code, references
from objects.admin.staff_access import Place, class_page
from objects.admin.values import read_json
from objects.core.names import parse_object_id
from objects.files import service as files
from objects.files.uploads import Upload
from objects.storage.records import wire_object

_OF_THE_SERVICE: Final = ("objectId", "createdAt", "updatedAt")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that was changed concurrently: the value to be saved, and the stored value."""

    name: str
    mine: Cell
    stored: Cell


@class_page("o/<str:object_id>/", "object", post="change")
def edit(place: Place, object_id: str) -> HttpResponseBase:
    """The fields and the access list of an object."""
    obj = _read(place, object_id)
    if place.request.method == "POST":
        return _save_fields(place, obj)
    return _show(place, obj, object_fields.inputs(place.table.schema, obj))


def _read(place: Place, object_id: str) -> Wire:
    return wire_object(service.get(place.reader, place.class_name, parse_object_id(object_id)))


def _show(
    place: Place,
    obj: Wire,
    inputs: list[Input],
    *,
    acl: AclForm | None = None,
    error: ServiceError | None = None,
    differences: list[Difference] | None = None,
) -> HttpResponse:
    schema = place.table.schema
    title = label(schema, obj) or str(obj["objectId"])
    response = place.render(
        "object",
        f"{place.class_name}: {title}",
        obj=obj,
        object_id=obj["objectId"],
        inputs=inputs,
        values=[(item, value_cell(obj.get(item.name))) for item in inputs if not item.is_secret],
        acl=acl or acl_form.from_wire(obj.get("ACL")),
        relations=_relations(place),
        references=references(place, str(obj["objectId"])),
        code=as_code(place, str(obj["objectId"])),
        error=error,
        differences=differences,
    )
    response.status_code = error.status if error else 409 if differences else 200
    if any(item.error for item in inputs):
        response.status_code = 400
    return response


def _relations(place: Place) -> list[tuple[str, str]]:
    fields = place.table.schema.fields
    return [
        (name, str(type_)) for name, type_ in sorted(fields.items()) if type_.kind == "Relation"
    ]


def _save_fields(place: Place, obj: Wire) -> HttpResponseBase:
    form = place.request.POST
    schema = place.table.schema
    writer = place.writer("change")
    entered = acl_form.from_post(form) if "acl.kind" in form else acl_form.from_wire(obj.get("ACL"))
    inputs = object_fields.inputs(schema, obj)
    try:
        changes, inputs = object_fields.read(
            schema, form, place.request.FILES, obj, _uploader(place, writer)
        )
        acl: Json = acl_form.to_wire(entered)
        if not acl_form.is_same(acl, obj.get("ACL")):
            changes["ACL"] = DELETE if acl is None else acl
        if any(item.error for item in inputs):
            return _show(place, obj, inputs, acl=entered)
        saved = _save(place, obj, changes, form.get("updatedAt", ""))
        return saved or _conflict(place, str(obj["objectId"]), inputs, entered, changes)
    except ServiceError as error:
        return _show(place, obj, inputs, acl=entered, error=error)


def _save(place: Place, obj: Wire, changes: Wire, updated_at: str) -> HttpResponseBase | None:
    """Save and redirect to the object, or return None if it was changed concurrently."""
    address = object_address(place.class_name, str(obj["objectId"]))
    if not changes:
        if updated_at != obj["updatedAt"]:
            return None
        messages.info(place.request, "Nothing is different, so nothing was saved.")
        return HttpResponseRedirect(address)
    object_id = str(obj["objectId"])
    saved = service.update_unchanged(
        place.writer("change"), place.class_name, parse_object_id(object_id), changes, updated_at
    )
    if saved is None:
        return None
    messages.success(place.request, f"Saved: {', '.join(sorted(changes))}.")
    return HttpResponseRedirect(address)


def _conflict(
    place: Place, object_id: str, inputs: list[Input], acl: AclForm, changes: Wire
) -> HttpResponse:
    stored = _read(place, object_id)
    return _show(place, stored, inputs, acl=acl, differences=_differences(changes, stored))


def _differences(changes: Wire, stored: Wire) -> list[Difference]:
    differences = []
    for name, value in changes.items():
        if name == "password":
            continue
        mine = value_cell(None if value == DELETE else value)
        differences.append(Difference(name, mine, value_cell(stored.get(name))))
    return differences


def _uploader(place: Place, writer: Principal) -> object_fields.Upload:
    """What stores a file that came with a form."""

    def upload(file: UploadedFile) -> Wire:
        user = place.request.user
        if place.acting is None and not user.has_perm("objects.add_storedfile"):
            raise OperationForbidden("You have no permission to add files.")
        principal = writer
        if place.acting is None:
            principal = principal_for(user, "objects.add_storedfile")
        files.check_may_upload(principal)
        with Upload(service_settings.MAX_UPLOAD_SIZE) as incoming:
            incoming.write_all(file.chunks())
            name = object_fields.safe_file_name(file.name or "")
            record = files.upload(principal, name, incoming, file.content_type, files.Notes())
        return {"__type": "File", "name": record.name, "url": files.address(record)}

    return upload


@class_page("add/", "add", post="add")
def add(place: Place) -> HttpResponseBase:
    """A new object."""
    place.require("add")
    schema, form = place.table.schema, place.request.POST
    inputs = object_fields.inputs(schema, None)
    entered: AclForm | None = None
    error: ServiceError | None = None
    if place.request.method == "POST":
        writer = place.writer("add")
        entered = acl_form.from_post(form)
        try:
            fields, inputs = object_fields.read(
                schema, form, place.request.FILES, None, _uploader(place, writer)
            )
            if form.get("acl.kind") != "default":
                # Distinguish an object without an ACL from one with the default ACL of its class.
                fields["ACL"] = acl_form.to_wire(entered)
            if not any(item.error for item in inputs):
                made = service.create(writer, place.class_name, fields)
                messages.success(place.request, f"The object {made.object_id} is there.")
                return HttpResponseRedirect(object_address(place.class_name, made.object_id))
        except ServiceError as refused:
            error = refused
    response = place.render(
        "add",
        f"{place.class_name}: a new object",
        inputs=inputs,
        acl=entered or AclForm(True, ()),
        acl_kind=form.get("acl.kind", "default"),
        default_acl=schema.permissions.default_acl,
        error=error,
    )
    failed = error is not None or any(item.error for item in inputs)
    response.status_code = error.status if error else 400 if failed else 200
    return response


@class_page("o/<str:object_id>/json/", "json", post="change")
def as_json(place: Place, object_id: str) -> HttpResponseBase:
    """The whole object as JSON, to be edited as one text."""
    obj = _read(place, object_id)
    text, error, differences = pretty(_own(obj)), None, None
    if place.request.method == "POST":
        text = place.request.POST.get("json", "")
        try:
            changes = _changes(place, obj, read_json(text))
            answer = _save(place, obj, changes, place.request.POST.get("updatedAt", ""))
            if answer is not None:
                return answer
            obj = _read(place, object_id)
            differences = _differences(changes, obj)
        except ServiceError as refused:
            error = refused
    response = place.render(
        "json",
        f"{place.class_name}: {label(place.table.schema, obj) or object_id}",
        obj=obj,
        object_id=object_id,
        text=text,
        rows=min(max(text.count("\n") + 2, 12), 40),
        whole=pretty(obj),
        error=error,
        differences=differences,
    )
    response.status_code = error.status if error else 409 if differences else 200
    return response


def _own(obj: Wire) -> Wire:
    """Return the writable fields of an object, without relations and fields of the service."""
    return {
        name: value
        for name, value in obj.items()
        if name not in _OF_THE_SERVICE
        and not (isinstance(value, dict) and value.get("__type") == "Relation")
    }


def _changes(place: Place, obj: Wire, acl: Json) -> Wire:
    if not isinstance(acl, dict):
        raise InvalidJSON("expected an object")
    before = _own(obj)
    changes = {
        name: value
        for name, value in acl.items()
        if name not in before or pretty(before[name]) != pretty(value)
    }
    return changes | {name: DELETE for name in before if name not in acl}


@class_page("o/<str:object_id>/delete/", "delete", post="delete")
def delete(place: Place, object_id: str) -> HttpResponseBase:
    """Deleting one object, after a confirmation."""
    place.require("delete")
    if "confirmed" not in place.request.POST:
        title = f"Delete 1 object of {place.class_name}?"
        return place.render("delete", title, object_id=object_id)
    service.delete(place.writer("delete"), place.class_name, parse_object_id(object_id))
    messages.success(place.request, "1 object deleted.")
    return HttpResponseRedirect(place.url("objects"))
