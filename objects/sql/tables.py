"""Where the objects of a class are: the table, and the columns that hold fields.

Every class is read and written through a ``ClassTable``. Its table has the columns that all
objects have (``object_id, created_at, updated_at, read_acl, write_acl, data``), and may hold some
fields in typed columns of their own: *promoted* columns. A field that is promoted is never in
``data``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from backend.kernel.json_types import Json
from objects.core.indexes.shapes import IndexFields
from objects.core.names import ClassName, FieldName
from objects.core.schema.definition import ClassSchema

ColumnType = Literal["text", "bigint", "numeric", "boolean", "timestamptz", "jsonb"]


@dataclass(frozen=True, slots=True)
class Column:
    """A promoted column: its quoted SQL name and its SQL type.

    A ``text`` column of a Pointer field holds the object id, ``timestamptz`` a Date, ``bigint``
    and ``numeric`` a Number, ``jsonb`` the wire form of anything else.

    A field that is computed when it is read has no column in the table: ``computed`` is the SQL of
    its value, in which ``{row}`` stands for the row. ``one_of`` returns, for some strings, the SQL
    of a condition that exactly the rows fulfil whose value is one of them, and that indexes of the
    table serve; None if it has none for these strings. ``values`` are all that it can have; empty
    for any.
    """

    name: str
    type: ColumnType
    computed: str | None = None
    one_of: Callable[[frozenset[str]], str | None] | None = None
    values: tuple[str, ...] = ()

    def sql(self, row: str) -> str:
        """The value in the row of this name; of the only table of the statement if it is empty."""
        if self.computed is not None:
            return f"({self.computed.replace('{row}.', f'{row}.' if row else '')})"
        return f"{row}.{self.name}" if row else self.name


_HOLD_FILES = frozenset({"File", "Object", "Array"})
_NO_COLUMNS: Mapping[FieldName, Column] = MappingProxyType({})


@dataclass(frozen=True)
class ClassTable:
    """A class as one version of its definition has it.

    ``relation`` is the quoted SQL name of the table, made by this service and never by a client.
    Generic classes are partitions of one table (``is_partition``), model-backed classes are tables
    of their own. ``version`` grows with every change of the class; each statement compares it
    with the database's, so that a definition kept in memory can't be used after it changed.
    """

    class_name: ClassName
    class_id: int
    version: int
    relation: str
    schema: ClassSchema
    columns: Mapping[FieldName, Column] = field(default_factory=lambda: _NO_COLUMNS)
    is_partition: bool = True
    hidden: frozenset[FieldName] = frozenset()
    """The fields that only the master key sees, regardless of permissions."""
    stored_in: str = ""
    """The quoted name of the table itself, where ``relation`` is a view of it."""
    learned: tuple[IndexFields, ...] = ()
    """The learned indexes that are valid (``objects.learned``)."""
    indexed: str = ""
    """The function of ``data`` that the index of all fields is on; empty for ``data`` itself."""
    readings: dict[tuple[str, str], Any] = field(default_factory=dict, compare=False, repr=False)
    """How ``fields`` reads fields that queries have named, by field and alias."""
    attached: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What layers above have read for this version of the class; see ``registry.renew``."""

    @property
    def storage(self) -> str:
        """The table that has the rows, and the indexes."""
        return self.stored_in or self.relation

    @cached_property
    def stored_columns(self) -> Mapping[FieldName, Column]:
        """The columns that the table has: all but those that are computed."""
        return {name: column for name, column in self.columns.items() if column.computed is None}

    @cached_property
    def computed(self) -> frozenset[FieldName]:
        """The fields that are computed when they are read, and never written."""
        return frozenset(self.columns.keys() - self.stored_columns.keys())

    @cached_property
    def short_fields(self) -> frozenset[FieldName]:
        """The String fields that learned indexes hold the beginnings of."""
        return frozenset(
            name
            for fields in self.learned
            for name, direction in fields
            if isinstance(direction, int)
            and name not in self.columns
            and (type_ := self.schema.fields.get(name)) is not None
            and type_.kind == "String"
        )

    @cached_property
    def relation_values(self) -> dict[str, Json]:
        """The value that each Relation field reads as; it is the same for all objects."""
        return {
            name: {"__type": "Relation", "className": type_.target_class}
            for name, type_ in self.schema.fields.items()
            if type_.kind == "Relation"
        }

    @cached_property
    def may_hold_files(self) -> bool:
        """Whether a File may be somewhere in an object of the class."""
        return any(type_.kind in _HOLD_FILES for type_ in self.schema.fields.values())

    @cached_property
    def relations_json(self) -> str:
        """``relation_values`` as JSON members, each with a comma behind it."""
        return "".join(
            f'"{name}":{json.dumps(value, separators=(",", ":"))},'
            for name, value in self.relation_values.items()
        )
