"""Thousands of new objects of one class at once, for the owner's own tools: the master key.

The outcome is that of ``create`` for one object after the other, but for the time: objects that are
stored together have the same. Checking what is to be stored (``prepare``) is Python alone and needs
no database, so it can go on in another thread while PostgreSQL stores what was checked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec
from django.db import transaction

from backend.kernel.errors import (
    ServiceError,
    ServiceUnavailable,
    Timeout,
    TransactionConflict,
    UnderMaintenance,
)
from backend.kernel.json_types import Json
from backend.kernel.principal import MASTER
from objects.core.names import ClassName, ObjectId, check_object_id
from objects.core.schema.definition import ClassSchema
from objects.core.update.operations import fit
from objects.core.update.parser import parse_write
from objects.definitions import registry
from objects.service import direct_writes, staged_writes
from objects.service.class_growth import create_class, grow
from objects.service.direct_writes import NotTogether
from objects.sql.tables import ClassTable
from objects.storage import writes
from objects.storage.conflicts import duplicate
from objects.storage.writes import NewRow

NOT_ABOUT_THE_OBJECT: tuple[type[ServiceError], ...] = (
    ServiceUnavailable,
    Timeout,
    TransactionConflict,
    UnderMaintenance,
)
"""Errors after which the same object may well be stored."""

_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(slots=True)  # freezing triples what it costs to make one
class NewObject:
    """An object to be stored.

    ``has_generated_id``: its id was made for it. If an object has the id already, it is this one.
    """

    object_id: str
    has_generated_id: bool
    fields: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Prepared:
    """New objects that were checked against ``schema``, in order.

    Each is a row, or the error of an object that can't be stored. ``grown`` is the schema with the
    fields that the rows add.
    """

    schema: ClassSchema
    grown: ClassSchema
    rows: Sequence[NewRow | ServiceError]


Outcomes: TypeAlias = list[ServiceError | None]
_Numbered: TypeAlias = Sequence[tuple[int, NewRow]]


def serves(class_name: ClassName) -> bool:
    """Return whether objects of the class can be stored in bulk.

    They can if it is a generic class without rules and without triggers around saves, or doesn't
    exist.
    """
    if staged_writes.concerns_saving(class_name):
        return False
    table = registry.find(class_name)
    return table is None or table.is_partition


def schema_of(class_name: ClassName) -> ClassSchema:
    """Return the schema to prepare objects for; that of the new class if it doesn't exist."""
    table = registry.find(class_name)
    return registry.new_class(class_name) if table is None else table.schema


def prepare(schema: ClassSchema, objects: Iterable[NewObject]) -> Prepared:
    """Check new objects. Never asks the database."""
    grown = schema
    rows: list[NewRow | ServiceError] = []
    for new in objects:
        try:
            row, grown = _prepared(grown, new)
        except ServiceError as error:
            rows.append(error.with_traceback(None))
        else:
            rows.append(row)
    return Prepared(schema, grown, rows)


def _prepared(schema: ClassSchema, new: NewObject) -> tuple[NewRow, ClassSchema]:
    """A new object's row, and the schema with what it adds."""
    object_id = check_object_id(new.object_id)
    write = parse_write(new.fields, creating=True)
    fitted, new_fields = fit(write, schema)
    adopted = schema.client_fields and schema.adopted_by(fitted.field_names - fitted.emptied)
    if new_fields or adopted:
        schema = replace(
            schema.with_fields(new_fields), client_fields=schema.client_fields - (adopted or set())
        )
    _, fields, acl = direct_writes.complete(MASTER, schema, fitted)
    return NewRow(object_id, acl, _encode(fields).decode(), fitted.relations), schema


def create(
    class_name: ClassName, objects: Sequence[NewObject], prepared: Prepared | None, *, stop: bool
) -> tuple[Outcomes, ClassSchema]:
    """Store new objects; for each None or its error, and the schema of the class afterwards.

    Call it in a transaction, from ``with_current_classes``. What was ``prepared`` for another
    schema than the class has is prepared again. With ``stop`` nothing is stored after the first
    object that can't be, and the list ends with it.

    Raises ``NotTogether`` if the class isn't one that ``serves`` is true for, and if an object adds
    fields to the class and PostgreSQL refuses one; also ``StaleClass`` and the errors
    in ``NOT_ABOUT_THE_OBJECT``.
    """
    if staged_writes.concerns_saving(class_name):
        raise NotTogether
    table = registry.find(class_name)
    if table is None:
        future = schema_of(class_name)
        if prepared is None or prepared.schema != future:
            prepared = prepare(future, objects)
        refused = [_error(row) for row in prepared.rows]
        if (stop and refused and refused[0]) or None not in refused:
            return refused[:1] if stop else refused, future  # and makes no class, as one alone
        create_class(class_name)
        table = _existing(class_name)
    if not table.is_partition:
        raise NotTogether
    if prepared is None or prepared.schema != table.schema:
        prepared = prepare(table.schema, objects)
    last: Outcomes = []
    first = next((n for n, row in enumerate(prepared.rows) if isinstance(row, ServiceError)), None)
    if stop and first is not None:
        # What comes after it adds no fields either.
        last = [_error(prepared.rows[first])]
        prepared = prepare(table.schema, objects[:first])
    outcomes: Outcomes = [_error(row) for row in prepared.rows]
    rows = [(n, row) for n, row in enumerate(prepared.rows) if isinstance(row, NewRow)]
    is_growing = prepared.grown is not prepared.schema
    if is_growing:
        table = grow(class_name, prepared.schema, prepared.grown)
    if not rows:
        writes.check_current(table)
    elif not _attempt(table, rows):
        if is_growing:
            raise NotTogether
        generated = frozenset(n for n, _ in rows if objects[n].has_generated_id)
        end = _Apart(table, generated, outcomes, stop).store(rows)
        if end is not None:
            return outcomes[: end + 1], table.schema
    return outcomes + last, table.schema


def _existing(class_name: ClassName) -> ClassTable:
    table = registry.find(class_name)
    assert table is not None  # made in this transaction
    return table


def _error(row: NewRow | ServiceError) -> ServiceError | None:
    return row if isinstance(row, ServiceError) else None


def _attempt(
    table: ClassTable, rows: _Numbered, refused: Callable[[ServiceError], None] | None = None
) -> bool:
    """Store all of the rows or none; whether they are stored."""
    try:
        with transaction.atomic():
            writes.create_rows(table, [row for _, row in rows])
    except NOT_ABOUT_THE_OBJECT:
        raise
    except ServiceError as error:
        if refused is not None:
            refused(error)
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Apart:
    """Rows that PostgreSQL refuses to store together.

    The acceptable rows are stored, the others get their error in ``outcomes``.
    """

    table: ClassTable
    generated: frozenset[int]
    outcomes: Outcomes
    stop: bool

    def store(self, rows: _Numbered) -> int | None:
        """Returns the number of the row to stop at, if any."""
        taken = writes.stored_ids(self.table, [row.object_id for _, row in rows])
        fresh: list[tuple[int, NewRow]] = []
        end: int | None = None
        stored: set[ObjectId] = set()
        for number, row in rows:
            is_taken = row.object_id in taken
            if is_taken and number in self.generated:
                continue  # stored before
            if is_taken or row.object_id in stored:
                self.outcomes[number] = duplicate("objectId")
                if self.stop:
                    end = number
                    break
            else:
                stored.add(row.object_id)
                fresh.append((number, row))
        refused = self._halves(fresh) if fresh else None
        return end if refused is None else refused

    def _halves(self, rows: _Numbered) -> int | None:
        number = rows[0][0]

        def refuse(error: ServiceError) -> None:
            self.outcomes[number] = error

        if _attempt(self.table, rows, refuse if len(rows) == 1 else None):
            return None
        if len(rows) == 1:
            return number if self.stop else None
        middle = len(rows) // 2
        end = self._halves(rows[:middle])
        return self._halves(rows[middle:]) if end is None else end


__all__ = [
    "NOT_ABOUT_THE_OBJECT",
    "NewObject",
    "NotTogether",
    "Prepared",
    "create",
    "prepare",
    "schema_of",
    "serves",
]
