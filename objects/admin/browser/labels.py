"""What people call the objects of a class: the field that names them, and look-ups by it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Json
from objects import service
from objects.admin.staff_access import Place, permission
from objects.core.names import OBJECT_ID, ClassName, FieldName, is_class_name, is_object_id
from objects.core.query.parser import parse_where
from objects.core.query.tree import FindOptions, OrderKey
from objects.core.schema.definition import ClassSchema
from objects.definitions import registry

_SUGGESTIONS: Final = 10
_NAMES: Final = ("username", "name", "title", "label", "email", "hash")
_ENDINGS: Final = ("name", "title", "label")
_LONGEST: Final = 80
_MOST_CLASSES: Final = 20  # whose objects are named on a page
_MOST_NAMED: Final = 2_000  # objects of each


def label_field(schema: ClassSchema) -> FieldName | None:
    """The field that tells people which object it is, if the class has one.

    It is the first String field in this order: one with a usual name (``username``, ``name``,
    ``title``, ``label``, ``email``, ``hash``), one whose name ends like these (``fullName``), a
    unique one, the first of the alphabet.
    """

    def rank(name: FieldName) -> tuple[int, str]:
        if name in _NAMES:
            return _NAMES.index(name), name
        if name.lower().endswith(_ENDINGS):
            return len(_NAMES), name
        return len(_NAMES) + (1 if schema.fields[name].unique else 2), name

    texts = [name for name, field in schema.fields.items() if field.kind == "String"]
    return min(texts, key=rank, default=None)


def label(schema: ClassSchema, obj: dict[str, Json]) -> str:
    """What people call an object; nothing if it has no name."""
    name = label_field(schema)
    value = obj.get(name) if name else None
    return value[:_LONGEST] if isinstance(value, str) else ""


def suggestions(place: Place, text: str) -> list[tuple[str, str]]:
    """Ids and labels of objects whose id is the text, or whose label begins with it."""
    name = label_field(place.table.schema)
    either: list[Json] = [{"objectId": text}] if is_object_id(text) else []
    if name and text:
        either.append({name: {"$regex": "^" + re.escape(text)}})
    if not either:
        return []
    options = FindOptions(
        where=parse_where({"$or": either}),
        limit=_SUGGESTIONS,
        order=(OrderKey((OBJECT_ID,)),),
    )
    matches = service.find(place.reader, place.class_name, options).objects()
    return [(str(obj["objectId"]), label(place.table.schema, obj)) for obj in matches]


Labels = dict[tuple[str, str], str]
"""Labels by class and id."""


def labels_of(place: Place, values: Iterable[Any]) -> Labels:
    """Return the labels of all objects that these values point to, by one find for each class.

    Objects that the staff user may not see have none, nor those beyond the first ``_MOST_NAMED`` of
    a class and ``_MOST_CLASSES``.
    """
    ids: dict[ClassName, set[str]] = {}
    for value in values:
        if isinstance(value, dict) and value.get("__type") == "Pointer":
            class_name, object_id = str(value.get("className")), str(value.get("objectId"))
            if is_class_name(class_name) and is_object_id(object_id):
                ids.setdefault(class_name, set()).add(object_id)
    labels: Labels = {}
    for class_name, pointed_to in list(ids.items())[:_MOST_CLASSES]:
        if place.request.user.has_perm(permission("view", class_name)):
            labels |= _labels(place, class_name, sorted(pointed_to)[:_MOST_NAMED])
    return labels


def _labels(place: Place, class_name: ClassName, ids: list[str]) -> Labels:
    table = registry.find(class_name)
    name = label_field(table.schema) if table else None
    if table is None or name is None:
        return {}
    options = FindOptions(
        where=parse_where({"objectId": {"$in": list(ids)}}),
        limit=len(ids),
        keys=frozenset({(name,)}),
    )
    try:
        objects = service.find(place.reader, class_name, options).objects()
    except ServiceError:
        return {}  # the ids are shown instead: too large together, or not for this user
    return {(class_name, str(obj["objectId"])): label(table.schema, obj) for obj in objects}
