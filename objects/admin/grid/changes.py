"""Edits in the cells of a grid, and deleting objects.

Each object is saved on its own, if it still is the version that the edit is based on, as on the
page of an object. The response has a result for each: what is stored now, or why nothing was saved.
The values that were replaced come along, so that the page can undo an edit by another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import Principal
from objects import service
from objects.admin.browser.labels import labels_of
from objects.admin.class_endpoints import ClassAPIView, class_endpoint
from objects.admin.grid.rows import cells_as_json, read_names
from objects.admin.grid.texts import check_editable, restored, value_of
from objects.admin.staff_access import Place
from objects.core.names import FieldName, parse_object_id
from objects.storage.records import wire_object

MOST_OBJECTS: Final = 20  # in a request; a page sends larger pastes in several


class ObjectChange(serializers.Serializer[Any]):
    """Edits of one object: for each field a ``text`` (null for no value) or a ``value``."""

    id = serializers.CharField(max_length=130)
    version = serializers.CharField(max_length=40)
    cells = serializers.DictField(child=serializers.DictField(), allow_empty=False)


class Changes(serializers.Serializer[Any]):
    """Edits of several objects, and the columns that the responses show."""

    changes = ObjectChange(many=True, max_length=MOST_OBJECTS, allow_empty=False)
    columns = serializers.CharField(max_length=30_000, allow_blank=True, default="")


class CellsView(ClassAPIView):
    """POST saves edits of up to ``MOST_OBJECTS`` objects, one object after the other."""

    permissions = {"POST": "change"}

    def post(self, request: Request, class_name: str) -> Response:
        entered = Changes(data=request.data)
        entered.is_valid(raise_exception=True)
        names = read_names(entered.validated_data["columns"])
        writer = self.place.writer("change")
        results = [
            {"id": change["id"], **_result(self.place, writer, change, names)}
            for change in entered.validated_data["changes"]
        ]
        return Response({"results": results})


def _result(
    place: Place, writer: Principal, change: Mapping[str, Any], names: Sequence[FieldName]
) -> dict[str, Any]:
    """Save the edits of an object. Return what the page shows of it."""
    body: Wire = {}
    for name, entered in change["cells"].items():
        try:
            body[name] = _value(place, name, entered)
        except ServiceError as error:
            return _error(error, name)
    try:
        return _save(place, writer, change, body, names)
    except ServiceError as error:
        return _error(error)


def _error(error: ServiceError, name: str | None = None) -> dict[str, Any]:
    return {"status": "error", "code": error.code, "error": error.message, "field": name}


def _value(place: Place, name: str, entered: Mapping[str, Any]) -> Json:
    field = check_editable(place.table.schema, name)
    if "value" in entered:
        return restored(FieldName(name), entered["value"])
    text = entered.get("text")
    if field.kind == "File" and text is not None:
        raise InvalidJSON("a file is chosen on the page of the object")
    if not (text is None or isinstance(text, str)):
        raise InvalidJSON("expected a text")
    return value_of(FieldName(name), field, text)


def _save(
    place: Place,
    writer: Principal,
    change: Mapping[str, Any],
    body: Wire,
    names: Sequence[FieldName],
) -> dict[str, Any]:
    object_id = parse_object_id(change["id"])

    def stored() -> Wire:
        return wire_object(service.get(place.reader, place.class_name, object_id))

    before = stored()
    status = "conflict"
    if before["updatedAt"] == change["version"]:
        saved = service.update_unchanged(
            writer, place.class_name, object_id, body, change["version"]
        )
        status = "conflict" if saved is None else "saved"
    now = stored()
    labels = labels_of(place, (now.get(name) for name in names))
    return {
        "status": status,
        "version": now["updatedAt"],
        "cells": cells_as_json(place, now, names, labels),
        "before": {name: _undo(before.get(name)) for name in body},
    }


def _undo(value: Json) -> dict[str, Json]:
    """Return the edit that restores a value."""
    return {"text": None} if value is None else {"value": value}


class Deletions(serializers.Serializer[Any]):
    """The objects to delete."""

    ids = serializers.ListField(
        child=serializers.CharField(max_length=130), max_length=MOST_OBJECTS, allow_empty=False
    )


class DeletionsView(ClassAPIView):
    """POST deletes up to ``MOST_OBJECTS`` objects, one after the other."""

    permissions = {"POST": "delete"}

    def post(self, request: Request, class_name: str) -> Response:
        entered = Deletions(data=request.data)
        entered.is_valid(raise_exception=True)
        writer = self.place.writer("delete")
        results = [
            {"id": object_id, **_deleted(self.place, writer, object_id)}
            for object_id in entered.validated_data["ids"]
        ]
        return Response({"results": results})


def _deleted(place: Place, writer: Principal, object_id: str) -> dict[str, Any]:
    try:
        service.delete(writer, place.class_name, parse_object_id(object_id))
    except ServiceError as error:
        return _error(error)
    return {"status": "deleted"}


class_endpoint("cells/", CellsView, name="cells")
class_endpoint("deletions/", DeletionsView, name="deletions")
