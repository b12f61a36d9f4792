"""Objects that another server had, for imports: as they were there, without triggers.

An object keeps its id, its times and its access list. Nothing is computed: no defaults, no required
fields, no access list of the class. What it holds is checked like every write, and the class's
rules store what belongs to it (an account's password, a session's token).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from backend.kernel.errors import (
    IncorrectType,
    InvalidClassName,
    ServiceError,
)
from objects.core.access.acl import parse_acl
from objects.core.names import ClassName, FieldName, check_object_id, is_object_id
from objects.core.schema.definition import ClassSchema
from objects.core.update.operations import apply, fit
from objects.core.update.parser import parse_write
from objects.database import maintenance
from objects.definitions import registry
from objects.rules import Rules, TransferredObject, rules_of
from objects.service.bulk import NOT_ABOUT_THE_OBJECT
from objects.service.class_growth import grow
from objects.service.stale_definitions import with_current_classes
from objects.sql.tables import ClassTable
from objects.storage import transfers
from objects.storage.conflicts import refusals
from objects.storage.records import Record
from objects.storage.transfers import TransferRow


@dataclass(frozen=True, slots=True)
class Transferred:
    """The outcome of one ``store``: how many objects were stored, and which were refused, why."""

    stored: int
    refused: dict[str, ServiceError]


def store(class_name: ClassName, objects: Sequence[TransferredObject]) -> Transferred:
    """Store objects of a class that exists; those that are stored already stay if they are newer.

    Raises ``InvalidClassName`` if the class doesn't exist, ``UnderMaintenance``, and what isn't
    about an object. One transaction.
    """

    def attempt() -> Transferred:
        with transaction.atomic():
            return _store(class_name, objects)

    try:
        return with_current_classes(attempt)
    except BaseException:
        registry.forget(class_name)
        raise


def add_members(class_name: ClassName, key: FieldName, members: Sequence[tuple[str, str]]) -> int:
    """Add pairs of owning and related ids to a relation; return how many pairs are valid ids."""
    valid = [pair for pair in members if all(map(is_object_id, pair))]

    def attempt() -> None:
        with transaction.atomic():
            table = _existing(class_name)
            owning_ids = [owning_id for owning_id, _ in valid]
            transfers.add_members(table, key, owning_ids, [related_id for _, related_id in valid])
            rules = rules_of(class_name)
            if rules is not None:
                rules.after_transfer([], [])

    with_current_classes(attempt)
    return len(valid)


def stored(class_name: ClassName, object_ids: Sequence[str]) -> list[Record]:
    """Return the objects of a class that have one of these ids, regardless of access lists."""

    def read() -> list[Record]:
        return transfers.read(_existing(class_name), object_ids)

    return with_current_classes(read)


def count(class_name: ClassName) -> int:
    """Return how many objects the class has."""
    return with_current_classes(lambda: transfers.count(_existing(class_name)))


def count_members(class_name: ClassName, key: FieldName, members: Sequence[tuple[str, str]]) -> int:
    """Return how many of these pairs a relation has."""
    owning_ids, related_ids = [pair[0] for pair in members], [pair[1] for pair in members]
    table = _existing(class_name)
    return transfers.count_members(table, key, owning_ids, related_ids)


def _existing(class_name: ClassName) -> ClassTable:
    table = registry.find(class_name)
    if table is None:
        raise InvalidClassName(f"Class {class_name} does not exist.")
    return table


@dataclass(frozen=True, slots=True)
class _Checked:
    """An object as it came, and as it is stored."""

    obj: TransferredObject
    row: TransferRow


def _store(class_name: ClassName, objects: Sequence[TransferredObject]) -> Transferred:
    maintenance.check()
    table = _existing(class_name)
    rules = rules_of(class_name)
    refused: dict[str, ServiceError] = {}
    checked: dict[str, _Checked] = {}
    grown = table.schema
    for obj in objects:
        try:
            valid, grown = _check(obj, grown, rules)
        except ServiceError as error:
            refused[obj.object_id] = error.with_traceback(None)
        else:
            # The last of several with the same id: one statement can't store both.
            checked[obj.object_id] = valid
    if grown is not table.schema:
        table = grow(class_name, table.schema, grown)
    stored = _attempt(table, list(checked.values()), rules, refused)
    return Transferred(stored, refused)


def _check(
    obj: TransferredObject, schema: ClassSchema, rules: Rules[Any] | None
) -> tuple[_Checked, ClassSchema]:
    stored = obj if rules is None else rules.before_transfer(obj)
    object_id = check_object_id(stored.object_id)
    write = parse_write(stored.fields, creating=True)
    fitted, new_fields = fit(write, schema)
    if fitted.relations:
        raise IncorrectType("Relations are transferred by their members.")
    if new_fields:
        schema = schema.with_fields(new_fields)
    acl = parse_acl(stored.acl)
    row = TransferRow(object_id, stored.created_at, stored.updated_at, acl, apply(fitted, {}))
    return _Checked(obj, row), schema


def _attempt(
    table: ClassTable,
    checked: Sequence[_Checked],
    rules: Rules[Any] | None,
    refused: dict[str, ServiceError],
) -> int:
    """Store all, or halves of them until each that can't be stored is found."""
    if not checked:
        return 0
    try:
        with transaction.atomic():
            ids = transfers.store(table, [item.row for item in checked])
            if rules is not None:
                stored = [item.obj for item in checked if item.obj.object_id in ids]
                skipped = [item.obj for item in checked if item.obj.object_id not in ids]
                with refusals(table):
                    rules.after_transfer(stored, skipped)
            return len(ids)
    except NOT_ABOUT_THE_OBJECT:
        raise
    except ServiceError as error:
        if len(checked) == 1:
            refused[checked[0].obj.object_id] = error.with_traceback(None)
            return 0
    middle = len(checked) // 2
    return sum(
        _attempt(table, half, rules, refused) for half in (checked[:middle], checked[middle:])
    )
