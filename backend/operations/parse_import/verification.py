"""Comparison of what a source has with what is stored here, object by object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from backend.operations.parse_import import class_definitions
from backend.operations.parse_import.formats.definitions import ClassDefinition
from backend.operations.parse_import.formats.stored_objects import digest, without_denials
from backend.operations.parse_import.sources.base import Source
from objects.core.names import ClassName, FieldName, check_class_name
from objects.core.values import kind
from objects.rules import TransferredObject, rules_of
from objects.service import transfers
from objects.storage.records import Record

_SHOWN: Final = 20
_MODULUS: Final = 1 << 128
_NOT_FIELDS: Final = frozenset({"objectId", "createdAt", "updatedAt", "ACL"})


@dataclass
class Comparison:
    """What both sides have of a class or a relation.

    ``checksum`` of each side is the sum of the digests of its objects: it doesn't depend on their
    order. ``examples`` name some objects that are missing or differ here.
    """

    name: str
    there: int = 0
    here: int = 0
    missing: int = 0
    different: int = 0
    checksum_there: int = 0
    checksum_here: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether this side has all objects of the other. Further ones are counted in ``here``."""
        return not self.missing and not self.different


def compare(source: Source) -> Iterator[Comparison]:
    """Compare class by class, then relation by relation. Constant memory."""
    definitions = class_definitions.imported(source.classes())
    for definition in definitions:
        yield _compare_objects(source, definition)
        for key in definition.relations:
            yield _compare_members(source, definition, FieldName(key))


def _compare_objects(source: Source, definition: ClassDefinition) -> Comparison:
    class_name = check_class_name(definition.name)
    comparison = Comparison(definition.name, here=transfers.count(class_name))
    for batch in source.objects(definition, ""):
        records = transfers.stored(class_name, [obj.object_id for obj in batch.objects])
        here: dict[str, Record] = {record.object_id: record for record in records}
        for obj in batch.objects:
            comparison.there += 1
            expected = digest(_stored_form(class_name, obj))
            comparison.checksum_there += int.from_bytes(expected, "big")
            record = here.get(obj.object_id)
            if record is None:
                comparison.missing += 1
                _example(comparison, obj.object_id, "missing")
                continue
            present = digest(_of_record(record))
            comparison.checksum_here += int.from_bytes(present, "big")
            if present != expected:
                comparison.different += 1
                _example(comparison, obj.object_id, "different")
        for unreadable in batch.unreadable:
            comparison.there += 1
            comparison.missing += 1
            _example(comparison, unreadable.name, unreadable.reason)
    comparison.checksum_there %= _MODULUS
    comparison.checksum_here %= _MODULUS
    return comparison


def _compare_members(source: Source, definition: ClassDefinition, key: FieldName) -> Comparison:
    class_name = check_class_name(definition.name)
    comparison = Comparison(f"{definition.name}.{key}")
    for _, members in source.members(definition, key, ""):
        count = transfers.count_members(class_name, key, members)
        comparison.there += len(members)
        comparison.here += count
        comparison.missing += len(members) - count
    return comparison


def _stored_form(class_name: ClassName, obj: TransferredObject) -> TransferredObject:
    """Return the object as it is stored here: the class's rules may leave things out."""
    rules = rules_of(class_name)
    return obj if rules is None else rules.before_transfer(obj)


def _of_record(record: Record) -> TransferredObject:
    wire = record.object()
    acl = wire.get("ACL")
    return TransferredObject(
        record.object_id,
        str(wire["createdAt"]),
        str(wire["updatedAt"]),
        without_denials(acl) if isinstance(acl, dict) else None,
        {
            name: value
            for name, value in wire.items()
            if name not in _NOT_FIELDS and kind(value) != "Relation"
        },
    )


def _example(comparison: Comparison, name: str, what: str) -> None:
    if len(comparison.examples) < _SHOWN:
        comparison.examples.append(f"{name}: {what}")
