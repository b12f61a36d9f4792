"""The fields of an object as inputs of a form, each by its type, and back.

``inputs`` shows an object, ``read`` takes what was entered. Errors of an input are shown
beside it, and what was entered stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from django.core.files.uploadedfile import UploadedFile

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json, Wire
from objects.admin.browser.cells import Cell, file_cell, value_cell
from objects.admin.values import read_json, read_number, read_point
from objects.core.schema.definition import ClassSchema, FieldType
from objects.core.values import date, equal, normalise, normalise_date, pointer

Upload = Callable[[UploadedFile], Wire]
DELETE: Final[Json] = {"__op": "Delete"}
_UNSAFE_IN_NAMES = re.compile(r"[^a-zA-Z0-9@. ~_-]")
# Fields that no column holds: what a new password is, is never read.
_WRITTEN_ONLY: Final[Mapping[str, Mapping[str, FieldType]]] = {
    "_User": {"password": FieldType("String")}
}


@dataclass(slots=True)
class Input:
    """One field in a form. ``text`` is what its control holds, ``second`` that of a second one."""

    name: str
    field: FieldType
    text: str = ""
    second: str = ""
    is_empty_text: bool = False
    shown: Cell | None = None
    error: str = ""
    is_secret: bool = False

    @property
    def key(self) -> str:
        """The name of its control."""
        return f"f.{self.name}"

    @property
    def rows(self) -> int:
        """How many lines its control has."""
        return min(max(self.text.count("\n") + 1, len(self.text) // 80 + 1), 20)


def inputs(schema: ClassSchema, obj: Wire | None) -> list[Input]:
    """The inputs of an object, or of a new one with the defaults of its class."""
    made = []
    for name, field in _editable(schema):
        value = field.default if obj is None else obj.get(name)
        made.append(_input(name, field, value))
    return made + [
        Input(name, field, is_secret=True)
        for name, field in _WRITTEN_ONLY.get(schema.class_name, {}).items()
    ]


def _editable(schema: ClassSchema) -> Iterator[tuple[str, FieldType]]:
    for name in sorted(schema.fields):
        field = schema.fields[name]
        if field.kind != "Relation":
            yield name, field


def _input(name: str, field: FieldType, value: Json) -> Input:
    made = Input(name, field)
    if value is None:
        return made
    match field.kind:
        case "String":
            made.text, made.is_empty_text = str(value), value == ""
        case "Boolean":
            made.text = "true" if value else "false"
        case "Date" if isinstance(value, dict):
            made.text = str(value.get("iso")).removesuffix("Z")
        case "Pointer" if isinstance(value, dict):
            made.text, made.shown = str(value.get("objectId")), value_cell(value)
        case "File" if isinstance(value, dict):
            made.shown = file_cell(value)
        case "GeoPoint" if isinstance(value, dict):
            made.text, made.second = _json(value.get("latitude")), _json(value.get("longitude"))
        case "Bytes" if isinstance(value, dict):
            made.text = str(value.get("base64"))
        case "Polygon" if isinstance(value, dict):
            made.text = _json(value.get("coordinates"))
        case "Number":
            made.text = _json(value)
        case _:
            made.text = pretty(value)
    return made


def read(
    schema: ClassSchema, form: Any, files: Any, before: Wire | None, upload: Upload
) -> tuple[Wire, list[Input]]:
    """The fields that the form changes, as a write, and the inputs as they were filled in.

    ``form`` and ``files`` are those of a request. Fields that the form doesn't have are left
    alone. Files are uploaded only if nothing else is wrong.
    """
    current = before or {}
    changes: Wire = {}
    filled = inputs(schema, before)
    uploads: list[Input] = []
    for item in filled:
        if item.key not in form and item.key not in files and f"{item.key}.remove" not in form:
            continue
        item.text, item.second = form.get(item.key, ""), form.get(f"{item.key}.second", "")
        item.is_empty_text = f"{item.key}.empty" in form
        if item.field.kind == "File":
            if files.get(item.key):
                uploads.append(item)
            elif f"{item.key}.remove" in form and current.get(item.name) is not None:
                changes[item.name] = DELETE
            continue
        try:
            value = entered_value(item)
        except ServiceError as error:
            item.error = error.message
            continue
        if item.is_secret:
            if value is not None:
                changes[item.name] = value
        elif not _is_same(value, current.get(item.name)):
            changes[item.name] = DELETE if value is None else value
    if before is None:
        changes = {name: value for name, value in changes.items() if value != DELETE}
    if not any(item.error for item in filled):
        for item in uploads:
            try:
                changes[item.name] = upload(files[item.key])
            except ServiceError as error:
                item.error = error.message
    return changes, filled


def _is_same(entered: Json, stored: Json) -> bool:
    if isinstance(entered, str) and isinstance(stored, str):
        # Browsers send every end of a line as two characters.
        return _lines(entered) == _lines(stored)
    return equal(entered, stored)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def entered_value(item: Input) -> Json:
    """What was entered, as a value of the field's type; None for nothing."""
    text = item.text
    if item.field.kind == "String":
        return _lines(text) if text or item.is_empty_text else None
    if item.field.kind == "GeoPoint":
        if not text.strip() and not item.second.strip():
            return None
        return read_point(text, item.second)
    if not text.strip():
        return None
    match item.field.kind:
        case "Number":
            return read_number(text)
        case "Boolean":
            return text == "true"
        case "Date":
            return date(normalise_date(text.strip()))
        case "Pointer":
            return normalise(pointer(item.field.target_class or "", text.strip()), item.name)
        case "Bytes":
            return normalise({"__type": "Bytes", "base64": "".join(text.split())}, item.name)
        case "Polygon":
            return normalise({"__type": "Polygon", "coordinates": read_json(text)}, item.name)
        case "Array":
            return _of_type(read_json(text), list, "expected an array in JSON, like [1, 2]")
    return _of_type(read_json(text), dict, 'expected an object in JSON, like {"a": 1}')


def _of_type(value: Json, expected: type, message: str) -> Json:
    if not isinstance(value, expected):
        raise InvalidJSON(message)
    return normalise(value, "")


def safe_file_name(name: str) -> str:
    """Return a valid file name derived from the name of the upload."""
    safe = _UNSAFE_IN_NAMES.sub("_", name)[-100:].lstrip("@. ~-")
    return safe or "file"


def pretty(value: Json) -> str:
    """JSON over several lines, as people edit it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
