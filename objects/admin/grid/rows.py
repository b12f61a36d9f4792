"""Rows of a grid as JSON, the names that pointers are chosen by, and how many objects there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects import service
from objects.admin.browser.cells import Cell, cell
from objects.admin.browser.labels import Labels, labels_of, suggestions
from objects.admin.class_endpoints import ClassAPIView, class_endpoint
from objects.admin.class_sizes import estimate
from objects.admin.grid import layouts, saved_views
from objects.admin.grid.questions import find_page, read_question, slow_order
from objects.admin.grid.texts import LONGEST, text_of
from objects.admin.staff_access import Place
from objects.core.names import FieldName, is_field_name

_LONGEST_LIST: Final = layouts.MOST_COLUMNS * 130


class RowsParameters(serializers.Serializer[Any]):
    """The query of a page of rows, without its filter, order and edges (``questions``)."""

    size = serializers.ChoiceField(choices=layouts.SIZES, required=False)
    columns = serializers.CharField(max_length=_LONGEST_LIST, required=False, allow_blank=True)
    view = serializers.IntegerField(min_value=0, max_value=2**63 - 1, required=False)


class RowsView(ClassAPIView):
    """A page of rows; without ``columns`` also which columns the grid has, perhaps by a view."""

    permissions = {"GET": "view"}

    def get(self, request: Request, class_name: str) -> Response:
        place = self.place
        parameters = RowsParameters(data=request.query_params)
        parameters.is_valid(raise_exception=True)
        names = read_names(parameters.validated_data.get("columns", ""))
        layout = None if names else _layout(place, parameters.validated_data.get("view"))
        size = parameters.validated_data.get("size") or (
            layout.size if layout else layouts.DEFAULT_SIZE
        )
        if layout is not None:
            names = [column.name for column in layout.columns]
        question = read_question(request._request)
        page = find_page(place, question, size, names or None)
        columns: Sequence[layouts.Column] = ()
        if layout is not None:
            columns = layout.columns
        elif not names:
            columns = layouts.proposed(place.table.schema, page.rows)
            names = [column.name for column in columns]
        return Response(
            {
                "rows": rows_as_json(place, page.rows, names),
                "columns": [{"name": column.name, "width": column.width} for column in columns],
                "size": size,
                "before": page.before and page.before.encode(),
                "after": page.after and page.after.encode(),
                "estimate": estimate(place.table.class_id),
                "isByDistance": question.is_by_distance,
                "slowOrder": slow_order(place, question),
            }
        )


def _layout(place: Place, view: int | None) -> layouts.Layout | None:
    """Return the columns of the view, or else what the staff user has chosen for the class."""
    chosen = None if view is None else saved_views.layout_of(place, view)
    return chosen or layouts.stored(place)


def read_names(text: str) -> list[FieldName]:
    """Return the fields in a list with commas. Raises ``InvalidQuery``."""
    names = [name for name in text.split(",") if name]
    fields = [name for name in names if is_field_name(name)]
    if len(fields) != len(names) or len(names) > layouts.MOST_COLUMNS:
        raise InvalidQuery(
            f"columns: expected at most {layouts.MOST_COLUMNS} names of fields with commas between."
        )
    return fields


def rows_as_json(
    place: Place, rows: Sequence[dict[str, Json]], names: Sequence[FieldName]
) -> list[dict[str, Any]]:
    """Return objects as the grid shows them: id, version and cells."""
    labels = labels_of(place, _values(rows, names))
    return [
        {
            "id": row["objectId"],
            "version": row["updatedAt"],
            "cells": cells_as_json(place, row, names, labels),
        }
        for row in rows
    ]


def _values(rows: Iterable[dict[str, Json]], names: Sequence[FieldName]) -> Iterable[Json]:
    return (row.get(name) for row in rows for name in names)


def cells_as_json(
    place: Place, row: dict[str, Json], names: Iterable[FieldName], labels: Labels
) -> dict[str, Any]:
    """Return the cells of an object that have something to show, by field.

    ``edit`` is the text that is edited and copied, unless it is what the cell shows; a cell with
    ``isCut`` has none, because its text is too long.
    """
    schema, object_id = place.table.schema, str(row["objectId"])
    cells: dict[str, Any] = {}
    for name in names:
        field = schema.field_type(name)
        is_relation = field is not None and field.kind == "Relation"
        if name in row or is_relation:
            value = row.get(name)
            shown = cell(place.class_name, object_id, name, field, value)
            cells[name] = _cell(shown, value, labels)
    return cells


def _cell(shown: Cell, value: Json, labels: Labels) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": shown.kind, "text": shown.text}
    for key, text in (("title", shown.title), ("href", shown.href), ("picture", shown.picture)):
        if text:
            made[key] = text
    if shown.kind == "pointer" and isinstance(value, dict):
        name = labels.get((str(value.get("className")), str(value.get("objectId"))))
        if name:
            made["text"] = name
    edited = text_of(value)
    if edited is not None and len(edited) > LONGEST:
        made["isCut"] = True
    elif edited != made["text"]:
        made["edit"] = edited
    return made


class NamesParameters(serializers.Serializer[Any]):
    """What was typed to find an object by."""

    text = serializers.CharField(max_length=200, allow_blank=True, default="")


class NamesView(ClassAPIView):
    """Objects whose id is the text, or whose name begins with it."""

    permissions = {"GET": "view"}

    def get(self, request: Request, class_name: str) -> Response:
        parameters = NamesParameters(data=request.query_params)
        parameters.is_valid(raise_exception=True)
        matches = suggestions(self.place, parameters.validated_data["text"])
        return Response({"names": [{"id": id_, "name": name} for id_, name in matches]})


class CountView(ClassAPIView):
    """How many objects a filter finds, counted."""

    permissions = {"GET": "view"}

    def get(self, request: Request, class_name: str) -> Response:
        question = read_question(request._request)
        count = service.count(self.place.reader, self.place.class_name, question.tree)
        return Response({"count": count})


class LayoutView(ClassAPIView):
    """The staff user's own columns of a class: PUT stores them, DELETE returns to the proposal."""

    permissions = {"PUT": "view", "DELETE": "view"}

    def put(self, request: Request, class_name: str) -> Response:
        layout = layouts.LayoutSerializer(data=request.data)
        layout.is_valid(raise_exception=True)
        entered = layout.validated_data
        columns = [[column["name"], column["width"]] for column in entered["columns"]]
        chosen = layouts.read(self.place.table.schema, columns, entered["size"])
        if chosen is None:
            raise InvalidQuery("columns: choose at least one field of the class.")
        layouts.store(self.place, chosen)
        return Response({})

    def delete(self, request: Request, class_name: str) -> Response:
        layouts.reset(self.place)
        return Response({})


class_endpoint("rows/", RowsView, name="rows")
class_endpoint("names/", NamesView, name="names")
class_endpoint("count/", CountView, name="count")
class_endpoint("layout/", LayoutView, name="layout")
