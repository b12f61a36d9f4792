"""Conversion of rows of a file to objects in wire form.

``Mapping`` renames, converts and combines. A value that doesn't fit its type is ``BadRow``, never
a guess: text becomes a Number only if the whole of it is one, ``"yes"`` is no Boolean.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from backend.kernel.json_types import Json
from objects.core import values
from objects.core.names import is_field_name
from objects.exchange.problems import BadRow
from objects.exchange.row_files import decode

# What the service itself sets.
_SET_BY_SERVICE = ("createdAt", "updatedAt", "__type", "className")
_MOST_REMEMBERED = 10_000
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class Column:
    """How one field is converted: a type of the object language, and what goes with it."""

    kind: str
    date_format: str | None = None
    target_class: str | None = None

    def convert(self, value: Any) -> Json:
        """Return the value in its wire form."""
        # A value with its type, as in an exported file, needs no conversion.
        if isinstance(value, dict) and "__type" in value:
            return value
        return _CONVERSIONS[self.kind](self, value)


@dataclass(frozen=True)
class RowMapping:
    """What the options of an import ask for. Columns are named as they are after renaming."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    geopoints: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    camel_case: bool = False
    id_field: str = "objectId"

    def apply(self, row: Mapping[str, Any]) -> tuple[str | None, dict[str, Json]]:
        """Return the object's id, if the row has one, and its fields."""
        names = self._names
        fields: dict[str, Any] = {}
        for column_name, value in row.items():
            name = (
                names[column_name] if column_name in names else self._remembered_name(column_name)
            )
            if name is None:
                continue
            if name in fields:
                raise BadRow(f"{column_name}: another column is called {name} as well")
            fields[name] = value
        object_id = fields.pop(self.id_field, None)
        for name, (latitude, longitude) in self.geopoints.items():
            point = _geopoint(fields.pop(latitude, None), fields.pop(longitude, None), name)
            if point is not None:
                fields[name] = point
        if self.columns:
            fields = {name: self._value(name, value) for name, value in fields.items()}
        return _object_id(object_id), fields

    @cached_property
    def _names(self) -> dict[str, str | None]:
        """The names of fields, by those of columns; None for columns that are left out."""
        return {}

    def _remembered_name(self, column_name: str) -> str | None:
        name = None if column_name in self.ignored else self.name(column_name)
        if name in self.ignored or name in _SET_BY_SERVICE:
            name = None
        if len(self._names) < _MOST_REMEMBERED:
            self._names[column_name] = name
        return name

    def name(self, column_name: str) -> str:
        """Return the field's name for a column's name."""
        name = self.renamed.get(column_name)
        if name is None:
            name = (
                camel_case(column_name)
                if self.camel_case and column_name not in _KEPT
                else column_name
            )
        if name != "ACL" and not is_field_name(name):
            raise BadRow(
                f"{column_name!r} is no name for a field: --camel-case or --rename changes it"
            )
        return name

    def _value(self, name: str, value: Any) -> Json:
        column = self.columns.get(name)
        if column is None or value is None:
            return value
        try:
            return column.convert(value)
        except ValueError as error:
            raise BadRow(f"{name}: {error}") from None


_KEPT = frozenset({"objectId", "createdAt", "updatedAt", "ACL"})


def camel_case(name: str) -> str:
    """``US Gross`` → ``usGross``, ``IMDB_rating`` → ``imdbRating``, ``Title`` → ``title``."""
    words = _WORD.findall(name)
    return "".join([word.lower() for word in words[:1]] + [word.capitalize() for word in words[1:]])


# -- inference ------------------------------------------------------------------------------------


def infer_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, Column]:
    """Types for columns of text (CSV) that every given row agrees on; String where in doubt.

    ``007`` keeps its zeros: a column with such a text is a String.
    """
    candidates: dict[str, list[str]] = {}
    for row in rows:
        for name, text in row.items():
            types = candidates.get(name, ["Number", "Boolean", "Date"])
            candidates[name] = [kind for kind in types if _fits(kind, text)]
    return {name: Column((kinds or ["String"])[0]) for name, kinds in candidates.items()}


def _fits(kind: str, text: str) -> bool:
    if kind == "Number":
        return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))
    if kind == "Boolean":
        return text in _BOOLEANS
    # Only with a time and a zone is a text surely a point in time.
    return "T" in text and (text.endswith("Z") or "+" in text) and _parses(text)


def _parses(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


# -- conversions ----------------------------------------------------------------------------------


def _string(column: Column, value: Any) -> Json:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"expected a String, got {_shown(value)}")


def _number(column: Column, value: Any) -> Json:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value.strip()):
        return int(value)
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"expected a Number, got {_shown(value)}")
    return number


def _boolean(column: Column, value: Any) -> Json:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _BOOLEANS:
        return _BOOLEANS[value.strip().lower()]
    raise ValueError(f"expected true or false, got {_shown(value)}")


def _date(column: Column, value: Any) -> Json:
    if not isinstance(value, str):
        raise ValueError(f"expected the text of a date, got {_shown(value)}")
    if column.date_format is not None:
        time = dt.datetime.strptime(value.strip(), column.date_format)  # noqa: DTZ007
    else:
        try:
            time = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(f"expected a date in ISO 8601, got {_shown(value)}") from None
    # Without a zone it is meant as UTC.
    time = time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)
    return values.date(f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z")


def _pointer(column: Column, value: Any) -> Json:
    if not isinstance(value, str) or not column.target_class:
        raise ValueError(f"expected an object id, got {_shown(value)}")
    return values.pointer(column.target_class, value)


def _container(expected: type, words: str) -> Callable[[Column, Any], Json]:
    def convert(column: Column, value: Any) -> Json:
        if isinstance(value, str):
            try:
                value = decode(value)
            except ValueError:
                raise ValueError(f"expected the JSON of {words}") from None
        if not isinstance(value, expected):
            raise ValueError(f"expected {words}, got {_shown(value)}")
        return cast(Json, value)

    return convert


_CONVERSIONS: dict[str, Callable[[Column, Any], Json]] = {
    "String": _string,
    "Number": _number,
    "Boolean": _boolean,
    "Date": _date,
    "Pointer": _pointer,
    "Array": _container(list, "an array"),
    "Object": _container(dict, "an object"),
    "GeoPoint": _container(dict, "a GeoPoint"),
    "Polygon": _container(dict, "a Polygon"),
    "Bytes": _container(dict, "Bytes"),
    "File": _container(dict, "a File"),
}
KINDS = tuple(_CONVERSIONS)


def _geopoint(latitude: Any, longitude: Any, name: str) -> Json:
    if latitude is None and longitude is None:
        return None
    number = Column("Number")
    try:
        return {
            "__type": "GeoPoint",
            "latitude": number.convert(latitude),
            "longitude": number.convert(longitude),
        }
    except ValueError as error:
        raise BadRow(f"{name}: {error}") from None


def _object_id(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadRow(f"objectId: expected a String, got {_shown(value)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
