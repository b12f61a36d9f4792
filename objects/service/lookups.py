"""Look up objects of many classes by their ids or by indexed texts, for the search of staff.

No triggers run: a search asks many classes at each key that is pressed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from backend.kernel.errors import MasterKeyRequired
from backend.kernel.json_types import Wire
from backend.kernel.limits import result_memory
from backend.kernel.principal import Principal
from objects.access.scope import Scope
from objects.core.names import ClassName, FieldName, ObjectId
from objects.core.query.tree import Compare, Equals, OrderKey, Query, all_of
from objects.definitions import registry
from objects.definitions.indexes import is_ordered_by_index
from objects.service.stale_definitions import with_current_classes
from objects.sql.tables import ClassTable
from objects.storage import id_lookup, reads
from objects.storage.records import wire_object

_LAST: Final = "\U0010ffff"
_MOST_FIELDS: Final = 3


def classes_with_id(
    principal: Principal, classes: Mapping[int, ClassName], object_id: ObjectId
) -> list[ClassName]:
    """Return those of the classes, which are given by their ids, that have an object with an id.

    For the master key and the read-only one. It is one statement with a lookup for each class.
    """
    _check(principal)
    return id_lookup.classes_with(classes, object_id)


def with_text(
    principal: Principal, class_name: ClassName, text: str, labels: Sequence[FieldName], limit: int
) -> list[Wire]:
    """Return the objects of a class that an index finds by a text, at most ``limit`` for a field.

    These are the String fields of which an index has the order, by the beginnings of their values,
    and the ``labels`` of a class that no model is behind, by their whole values. For the master key
    and the read-only one.
    """
    _check(principal)
    return with_current_classes(lambda: _with_text(principal, class_name, text, labels, limit))


def _with_text(
    principal: Principal, class_name: ClassName, text: str, labels: Sequence[FieldName], limit: int
) -> list[Wire]:
    table = registry.find(class_name)
    if table is None:
        return []
    objects: dict[str, Wire] = {}
    for where, order in _conditions(table, text, labels):
        records = reads.find(
            table,
            where,
            Scope(principal),
            order=order,
            limit=limit,
            memory=result_memory.of_query(),
        )
        objects |= {record.object_id: wire_object(record) for record in records}
    return [*objects.values()]


def _conditions(
    table: ClassTable, text: str, labels: Sequence[FieldName]
) -> list[tuple[Query, tuple[OrderKey, ...]]]:
    texts = sorted(name for name, field in table.schema.fields.items() if field.kind == "String")
    ordered = [name for name in texts if is_ordered_by_index(table, (name,))][:_MOST_FIELDS]
    conditions: list[tuple[Query, tuple[OrderKey, ...]]] = []
    for name in ordered:
        start = all_of(Compare((name,), "gte", text), Compare((name,), "lt", text + _LAST))
        conditions.append((start, (OrderKey((name,)),)))
    if table.is_partition:
        # The index of all fields has their whole values.
        equal = [name for name in labels if name in texts and name not in ordered]
        conditions += [(Equals((name,), text), ()) for name in equal]
    return conditions


def _check(principal: Principal) -> None:
    if not principal.has_master_key:
        raise MasterKeyRequired
