"""Comparison of what a source has with what is stored here, object by object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from backend.kernel.errors import InvalidClassName, ServiceError
from backend.kernel.principal import MASTER
from backend.operations.parse_import import class_definitions
from backend.operations.parse_import.formats.definitions import ClassDefinition
from backend.operations.parse_import.formats.stored_objects import (
    UnreadableValue,
    digest,
    without_denials,
)
from backend.operations.parse_import.sources.base import Source
from objects.core.names import ClassName, FieldName, check_class_name, is_object_id
from objects.core.values import kind
from objects.rules import TransferredObject, rules_of
from objects.service import classes, transfers
from objects.service.bulk import NOT_ABOUT_THE_OBJECT
from objects.storage.records import Record

_SHOWN: Final = 20
_MODULUS: Final = 1 << 128
_NOT_FIELDS: Final = frozenset({"objectId", "createdAt", "updatedAt", "ACL"})


@dataclass
class Comparison:
    """What both sides have of a class or a relation.

    The checksums are the sums of the digests of the objects that the source has, as they are there
    and as they are here: they don't depend on the order. Relations have none. ``newer_here`` counts
    objects that differ and were updated here after their last update there, ``different`` the
    others that differ. ``examples`` name some of all these.
    """

    name: str
    there: int = 0
    here: int = 0
    missing: int = 0
    different: int = 0
    newer_here: int = 0
    checksum_there: int = 0
    checksum_here: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def has_everything(self) -> bool:
        """Whether all objects of the source are here, as they were there or newer.

        Further ones are counted in ``here``.
        """
        return not self.missing and not self.different


def compare(source: Source) -> Iterator[Comparison]:
    """Compare class by class, then relation by relation. Constant memory."""
    definitions = class_definitions.imported(source.classes())
    for definition in definitions:
        class_name = _class_here(definition.name)
        yield _compare_objects(source, definition, class_name)
        for key in definition.relations:
            yield _compare_members(source, definition, class_name, FieldName(key))


def _class_here(name: str) -> ClassName | None:
    """Return the class of this name, or None if there is none here."""
    try:
        class_name = check_class_name(name)
        classes.schema(MASTER, class_name)
    except InvalidClassName:
        return None
    return class_name


def _compare_objects(
    source: Source, definition: ClassDefinition, class_name: ClassName | None
) -> Comparison:
    comparison = Comparison(definition.name)
    if class_name is not None:
        comparison.here = transfers.count(class_name)
    # Counted first: objects that are added while the source is read aren't missed.
    counted = source.count(definition)
    for batch in source.objects(definition, ""):
        here = {} if class_name is None else _records(class_name, batch.objects)
        for obj in batch.objects:
            comparison.there += 1
            if class_name is None:
                _missing(comparison, obj.object_id, "its class isn't here")
            else:
                _compare_object(comparison, class_name, obj, here.get(obj.object_id))
        for unreadable in batch.unreadable:
            comparison.there += 1
            _missing(comparison, unreadable.name, unreadable.reason)
    unread = counted - comparison.there
    if unread > 0:
        comparison.missing += unread
        _example(comparison, f"{unread:,} more", "counted by the source, but not returned")
    comparison.checksum_there %= _MODULUS
    comparison.checksum_here %= _MODULUS
    return comparison


def _compare_object(
    comparison: Comparison, class_name: ClassName, obj: TransferredObject, record: Record | None
) -> None:
    try:
        expected = digest(_stored_form(class_name, obj))
    except NOT_ABOUT_THE_OBJECT:
        raise
    except (ServiceError, UnreadableValue) as error:
        _missing(comparison, obj.object_id, str(error))
        return
    comparison.checksum_there += int.from_bytes(expected, "big")
    if record is None:
        _missing(comparison, obj.object_id, "missing")
        return
    stored = _of_record(record)
    present = digest(stored)
    comparison.checksum_here += int.from_bytes(present, "big")
    if present != expected:
        _differs(comparison, obj.object_id, there=obj.updated_at, here=stored.updated_at)


def _differs(comparison: Comparison, object_id: str, *, there: str, here: str) -> None:
    if here > there:
        comparison.newer_here += 1
        _example(comparison, object_id, f"updated later here ({here}) than there ({there})")
    elif here < there:
        comparison.different += 1
        _example(comparison, object_id, f"updated later there ({there}) than here ({here})")
    else:
        comparison.different += 1
        _example(comparison, object_id, f"different, both updated at {here}")


def _compare_members(
    source: Source, definition: ClassDefinition, class_name: ClassName | None, key: FieldName
) -> Comparison:
    comparison = Comparison(f"{definition.name}.{key}")
    for _, members in source.members(definition, key, ""):
        valid = [member for member in members if all(map(is_object_id, member))]
        count = 0 if class_name is None else transfers.count_members(class_name, key, valid)
        comparison.there += len(members)
        comparison.here += count
        comparison.missing += len(members) - count
    return comparison


def _records(class_name: ClassName, objects: Sequence[TransferredObject]) -> dict[str, Record]:
    ids = [obj.object_id for obj in objects if is_object_id(obj.object_id)]
    return {record.object_id: record for record in transfers.stored(class_name, ids)}


def _stored_form(class_name: ClassName, obj: TransferredObject) -> TransferredObject:
    """Return the object as it is stored here: the class's rules may leave things out.

    Raises the ``ServiceError`` for which the rules refuse it.
    """
    rules = rules_of(class_name)
    return obj if rules is None else rules.before_transfer(obj)


def _of_record(record: Record) -> TransferredObject:
    wire = record.object()
    acl = wire.get("ACL")
    return TransferredObject(
        object_id=record.object_id,
        created_at=str(wire["createdAt"]),
        updated_at=str(wire["updatedAt"]),
        acl=without_denials(acl) if isinstance(acl, dict) else None,
        fields={
            name: value
            for name, value in wire.items()
            if name not in _NOT_FIELDS and kind(value) != "Relation"
        },
    )


def _missing(comparison: Comparison, name: str, reason: str) -> None:
    comparison.missing += 1
    _example(comparison, name, reason)


def _example(comparison: Comparison, name: str, what: str) -> None:
    if len(comparison.examples) < _SHOWN:
        comparison.examples.append(f"{name}: {what}")
