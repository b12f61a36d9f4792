"""The declared indexes of a class, and which ones its slow queries would want."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponseBase, HttpResponseRedirect

from backend.kernel.errors import InvalidQuery, ServiceError
from backend.kernel.json_types import Json
from backend.settings.conf import service_settings
from objects.admin.staff_access import Place, class_page
from objects.definitions import indexes
from objects.learned import overview
from objects.learned.advice import advice
from objects.service import classes

_FIELDS: Final = 4
_DIRECTIONS: Final = (
    ("1", "ascending"),
    ("-1", "descending"),
    ("text", "words of a text"),
    ("2dsphere", "places"),
)


@class_page("indexes/", "indexes", subject="class", post="change")
def index_list(place: Place) -> HttpResponseBase:
    """The indexes, with forms that add and remove one."""
    error, form = None, place.request.POST
    if place.request.method == "POST":
        try:
            done = _change(place, form)
            messages.success(place.request, done)
            return HttpResponseRedirect(place.request.path)
        except ServiceError as refused:
            error = refused
    table = place.table
    missing = {index.name for index in indexes.missing(table)}
    rows = [
        (
            index,
            ", ".join(f"{name} {dict(_DIRECTIONS)[str(way)]}" for name, way in index.fields),
            index.name in missing,
            index.name in table.schema.indexes,
        )
        for index in table.schema.index_declarations.values()
    ]
    response = place.render(
        "indexes",
        f"{place.class_name}: indexes",
        rows=rows,
        fields=sorted([*table.schema.fields, "objectId", "createdAt", "updatedAt"]),
        directions=_DIRECTIONS,
        spare=range(_FIELDS),
        advice=advice(table),
        learned=overview.overview(table),
        auto_index=service_settings.AUTO_INDEX,
        error=error,
    )
    response.status_code = error.status if error else 200
    return response


def _change(place: Place, form: Any) -> str:
    writer = place.writer("change", "class")
    dropped, suggested = form.get("drop"), form.get("build")
    if dropped:
        overview.drop(place.table, dropped)
        return f"The index {dropped} is dropped. It is not built again for a week."
    if suggested:
        if overview.build(place.table, suggested):
            return "The index is built."
        raise InvalidQuery("The index could not be built; the list says why.")
    removed = form.get("remove")
    if removed:
        body: Json = {"indexes": {removed: {"__op": "Delete"}}}
        classes.change(writer, place.class_name, body)
        return f"The index {removed} is removed."
    fields: dict[str, Json] = {}
    for name, way in zip(form.getlist("field"), form.getlist("direction"), strict=False):
        if name:
            fields[name] = int(way) if way in ("1", "-1") else way
    if not fields:
        raise InvalidQuery("Choose at least one field.")
    name = form.get("name", "").strip() or "by_" + "_".join(fields)[:58]
    wire: Json = {"fields": fields, "unique": True} if "unique" in form else fields
    classes.change(writer, place.class_name, {"indexes": {name: wire}})
    return f"The index {name} is built."
