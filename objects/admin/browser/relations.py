"""The members of a relation: which objects they are, adding some, removing some."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpResponseBase, HttpResponseRedirect

from backend.kernel.errors import InvalidKeyName, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects import service
from objects.admin.browser import pagination
from objects.admin.browser.cells import object_address
from objects.admin.browser.labels import label
from objects.admin.staff_access import Place, class_page, permission
from objects.core.names import OBJECT_ID, ClassName, is_field_name, parse_object_id
from objects.core.query.parser import parse_where
from objects.core.query.tree import FindOptions, OrderKey, Query
from objects.core.values import pointer
from objects.definitions.registry import find as find_class

_PAGE: Final = 50


@class_page("o/<str:object_id>/relation/<str:key>/", "relation", post="change")
def members(place: Place, object_id: str, key: str) -> HttpResponseBase:
    """The members, by their ids."""
    field = place.table.schema.fields.get(key) if is_field_name(key) else None
    if field is None or field.kind != "Relation" or field.target_class is None:
        raise InvalidKeyName(f"There is no relation {shown(key)}.", status=404)
    service.get(place.reader, place.class_name, parse_object_id(object_id))
    error: ServiceError | None = None
    if place.request.method == "POST":
        try:
            changed = _change(place, object_id, key, field.target_class)
            messages.success(place.request, changed)
            return HttpResponseRedirect(place.request.path)
        except ServiceError as refused:
            error = refused
    may_look = place.request.user.has_perm(permission("view", field.target_class))
    read = pagination.PageOfRows([], None, None)
    if may_look:
        read = _read(place, object_id, key, field.target_class)
    target = find_class(field.target_class)
    rows = [
        (
            str(row["objectId"]),
            object_address(field.target_class, str(row["objectId"])),
            label(target.schema, row) if target else "",
        )
        for row in read.rows
    ]
    response = place.render(
        "relation",
        f"{place.class_name} {object_id}: {key}",
        object_id=object_id,
        key=key,
        target_class=field.target_class,
        may_look=may_look,
        rows=rows,
        after=read.after and read.after.encode(),
        before=read.before and read.before.encode(),
        error=error,
    )
    response.status_code = error.status if error else 200
    return response


def _read(place: Place, object_id: str, key: str, target_class: ClassName) -> pagination.PageOfRows:
    related: Json = {"$relatedTo": {"object": pointer(place.class_name, object_id), "key": key}}

    def find(where: Query, order: tuple[OrderKey, ...], limit: int) -> list[pagination.Row]:
        options = FindOptions(where=where, limit=limit, order=order)
        return service.find(place.reader, target_class, options).objects()

    query = place.request.GET
    edges = {
        name: pagination.decode_edge(query[name]) for name in ("after", "before") if query.get(name)
    }
    sorting = pagination.Sorting(OBJECT_ID)
    return pagination.read_page(find, parse_where(related), sorting, _PAGE, **edges)


def _change(place: Place, object_id: str, key: str, target_class: ClassName) -> str:
    form = place.request.POST
    removed = form.getlist("ids")
    added = form.get("add", "").replace(",", " ").split()
    operator, ids = ("RemoveRelation", removed) if removed else ("AddRelation", added)
    if not ids:
        return "Nothing was chosen."
    pointers: list[Json] = [pointer(target_class, each) for each in ids]
    body: dict[str, Json] = {key: {"__op": operator, "objects": pointers}}
    service.update(place.writer("change"), place.class_name, parse_object_id(object_id), body)
    return f"{len(ids)} {'removed' if removed else 'added'}."
