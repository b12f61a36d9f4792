"""The columns of a grid: what a staff user has chosen for a class, or a proposal from its objects.

A proposal has short values first, so that most of an object is visible without scrolling. Texts
that are long in the first objects come last, and no column is wider than ``_PROPOSED_AT_MOST``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from rest_framework import serializers

from backend.kernel.json_types import Json
from objects.admin.browser.cells import cell
from objects.admin.browser.labels import label_field
from objects.admin.staff_access import Place
from objects.core.names import CREATED_AT, OBJECT_ID, UPDATED_AT, FieldName
from objects.core.schema.definition import ClassSchema
from objects.staff.models import StaffGrid

SIZES: Final = (50, 100, 200, 500)
"""The sizes of pages that staff choose from."""
DEFAULT_SIZE: Final = 100
NARROWEST: Final = 48  # pixels
WIDEST: Final = 1000
MOST_COLUMNS: Final = 200
_MOST_LAYOUTS: Final = 200  # classes, for each staff user
_MOST_PROPOSED: Final = 24
_PROPOSED_AT_MOST: Final = 260  # pixels
_CHARACTER: Final = 8  # pixels
_PADDING: Final = 22
_LONG: Final = 40  # characters
_NAME: Final = 16  # characters of a pointer's name, which its value doesn't show
_LAST_KINDS: Final = ("GeoPoint", "Array", "Object", "Polygon", "Bytes", "Relation")
ACL: Final = FieldName("ACL")


@dataclass(frozen=True, slots=True)
class Column:
    """A column after that of the ids, which every grid has."""

    name: FieldName
    width: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns in their order, and how many rows a page has."""

    columns: tuple[Column, ...]
    size: int


class ColumnSerializer(serializers.Serializer[Any]):
    """A column: the field and the width in pixels."""

    name = serializers.CharField(max_length=128)
    width = serializers.IntegerField(min_value=NARROWEST, max_value=WIDEST)


class LayoutSerializer(serializers.Serializer[Any]):
    """What a staff user has chosen for a class."""

    columns = ColumnSerializer(many=True, max_length=MOST_COLUMNS)
    size = serializers.ChoiceField(choices=SIZES)


def column_names(schema: ClassSchema) -> list[FieldName]:
    """Return everything that can be a column."""
    return [OBJECT_ID, *sorted(schema.fields), CREATED_AT, UPDATED_AT, ACL]


def stored(place: Place) -> Layout | None:
    """Return what the staff user has chosen for the class, without fields that it no longer has."""
    row = StaffGrid.objects.filter(
        user=place.request.user.pk, class_name=place.class_name, name=""
    ).first()
    return None if row is None else read(place.table.schema, row.columns, row.size)


def read(schema: ClassSchema, columns: Any, size: int) -> Layout | None:
    """Return a layout from its stored form; None if no column of it is left."""
    names = {*column_names(schema)} - {OBJECT_ID}
    widths = {name: width for name, width in columns if name in names}
    chosen = tuple(Column(FieldName(name), int(width)) for name, width in widths.items())
    return Layout(chosen, size) if chosen else None


def store(place: Place, layout: Layout) -> None:
    """Store the layout as the staff user's own of this class.

    Of more than ``_MOST_LAYOUTS`` classes the layouts that were changed longest ago are removed.
    """
    user_id = place.request.user.pk
    with transaction.atomic():
        StaffGrid.objects.update_or_create(
            user_id=user_id,
            class_name=place.class_name,
            name="",
            defaults={
                "columns": [[column.name, column.width] for column in layout.columns],
                "size": layout.size,
            },
        )
        own = StaffGrid.objects.filter(user=user_id, name="").order_by("-changed_at", "-id")
        oldest = list(own.values_list("pk", flat=True)[_MOST_LAYOUTS : _MOST_LAYOUTS + 100])
        if oldest:
            StaffGrid.objects.filter(pk__in=oldest).delete()


def reset(place: Place) -> None:
    """Forget what the staff user has chosen for the class."""
    StaffGrid.objects.filter(
        user=place.request.user.pk, class_name=place.class_name, name=""
    ).delete()


def proposed(schema: ClassSchema, rows: Sequence[Mapping[str, Json]]) -> tuple[Column, ...]:
    """Return columns that suit these objects: the name of an object, short values, long ones."""
    own = sorted(schema.fields)
    widths = {name: _characters(schema, name, rows) for name in (*own, CREATED_AT, UPDATED_AT)}
    naming = label_field(schema)

    def rank(name: FieldName) -> tuple[bool, bool, int]:
        is_empty = bool(rows) and all(row.get(name) is None for row in rows)
        kind = schema.fields[name].kind
        last = _LAST_KINDS.index(kind) + 1 if kind in _LAST_KINDS else 0
        return name != naming, is_empty, last

    ranked = sorted(own, key=rank)[:_MOST_PROPOSED]
    short = [name for name in ranked if widths[name] < _LONG or name == naming]
    long = [name for name in ranked if name not in short]
    return tuple(
        Column(name, _pixels(name, widths[name]))
        for name in (*short, CREATED_AT, *long, UPDATED_AT)
    )


def _characters(schema: ClassSchema, name: FieldName, rows: Sequence[Mapping[str, Json]]) -> int:
    """How many characters the longest cell of a column has, but for the longest tenth."""
    field = schema.field_type(name)
    lengths = sorted(
        len(cell(schema.class_name, str(row["objectId"]), name, field, row[name]).text)
        for row in rows
        if name in row
    )
    longest = lengths[(len(lengths) - 1) * 9 // 10] if lengths else 0
    return max(longest, _NAME) if field and field.kind == "Pointer" else longest


def _pixels(name: str, characters: int) -> int:
    width = int(max(characters, len(name) + 2) * _CHARACTER) + _PADDING
    return max(min(width, _PROPOSED_AT_MOST), 72)
