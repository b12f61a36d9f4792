"""Values as texts, as people edit them in a cell and paste them from a spreadsheet, and back."""

from __future__ import annotations

from typing import Final

import msgspec

from backend.kernel.errors import InvalidJSON, OperationForbidden
from backend.kernel.json_types import Json
from objects.admin.browser.fields import DELETE, Input, entered_value
from objects.core.names import FieldName
from objects.core.schema.definition import ClassSchema, FieldType
from objects.core.values import kind, normalise

LONGEST: Final = 10_000  # characters; a longer value is edited on the page of its object
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NOT_IN_CELLS: Final = ("File", "Relation")


def is_editable(schema: ClassSchema, name: FieldName) -> bool:
    """Return whether a cell of this field can be edited."""
    field = schema.fields.get(name)
    return field is not None and field.kind not in _NOT_IN_CELLS


def text_of(value: Json) -> str | None:
    """Return the text of a value; None for no value."""
    match value:
        case None:
            return None
        case str():
            return value
        case dict() if kind(value) != "Object":
            return _typed(value)
    return _json(value)


def _typed(value: dict[str, Json]) -> str:
    match value.get("__type"):
        case "Date":
            return str(value.get("iso"))
        case "Pointer" | "Object":
            return str(value.get("objectId"))
        case "GeoPoint":
            return f"{_json(value.get('latitude'))}, {_json(value.get('longitude'))}"
        case "Bytes":
            return str(value.get("base64"))
        case "Polygon":
            return _json(value.get("coordinates"))
        case "File":
            return str(value.get("name"))
    return _json(value)


def value_of(name: FieldName, field: FieldType, text: str | None) -> Json:
    """Return the value that a text means for a field, or ``DELETE`` for no value.

    Raises ``InvalidJSON`` or ``IncorrectType``.
    """
    if text is None:
        return DELETE
    item = Input(name, field, text, is_empty_text=True)
    match field.kind:
        case "Boolean" if text.strip():
            value: Json = _BOOLEANS.get(text.strip().lower())
            if value is None:
                raise InvalidJSON("expected true or false")
            return value
        case "GeoPoint":
            item.text, comma, item.second = text.partition(",")
            if text.strip() and not comma:
                raise InvalidJSON("expected latitude, longitude, like 48.2, 16.37")
    value = entered_value(item)
    return DELETE if value is None else value


def restored(name: FieldName, value: Json) -> Json:
    """Return a value that a cell had before, checked; operators aren't values."""
    if isinstance(value, dict) and "__op" in value:
        raise InvalidJSON("expected a value, not an operator")
    return normalise(value, name)


def check_editable(schema: ClassSchema, name: str) -> FieldType:
    """Return the type of a field of the class that may be written from the grid.

    Raises ``OperationForbidden``.
    """
    field = schema.fields.get(FieldName(name))
    if field is None or field.kind == "Relation":
        raise OperationForbidden("This column can't be edited in the grid.", status=400)
    return field


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
