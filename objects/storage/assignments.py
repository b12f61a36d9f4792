"""The ``SET`` clauses of an update: fields, counters, arrays and access lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from backend.kernel.json_types import Json
from objects.core.access.acl import Acl
from objects.core.names import FieldName
from objects.core.update.operations import LARGE_AMOUNT, Write
from objects.core.update.operators import Add, Delete, Increment, Operation, Set
from objects.sql.rows import column_parameter
from objects.sql.tables import ClassTable

_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True, slots=True)
class Assignments:
    """``SET`` clauses with their parameters."""

    clauses: tuple[str, ...]
    params: tuple[Any, ...]


COMPUTED = (Increment, Add)
"""Operators whose results PostgreSQL computes from the stored value."""
# Of one statement: PostgreSQL takes 50 pairs in one jsonb_build_object, and each sequence of
# operators is a statement of its own.
_MOST_COMPUTED = 20


def simple_assignments(table: ClassTable, write: Write) -> Assignments | None:
    """Return the ``SET`` clauses of a simple write; None if it depends on stored values."""
    clauses: list[str] = []
    params: list[Any] = []
    replaced: dict[str, Json] = {}
    removed: list[str] = []
    computed: list[str] = []
    computed_params: list[Any] = []
    # A simple write has no dotted names.
    for name, operation in cast("Mapping[FieldName, Operation]", write.operations).items():
        column = table.columns.get(name)
        if column is not None:
            if isinstance(operation, COMPUTED):
                return None
            value = operation.value if isinstance(operation, Set) else None
            clauses.append(f"{column.name} = %s")
            params.append(column_parameter(column, value, name))
        elif isinstance(operation, Set):
            replaced[name] = operation.value
        elif isinstance(operation, Delete):
            removed.append(name)
        elif isinstance(operation, Increment):
            if abs(operation.amount) > LARGE_AMOUNT:
                # It can't become a double without care, and its success may depend on the value.
                return None
            expression, values = _sum(name, operation.amount)
            computed.append(f"%s::text, {expression}")
            computed_params += [name, *values]
        elif isinstance(operation, Add):
            computed.append("%s::text, COALESCE(NULLIF(t.data -> %s, 'null'), '[]') || %s::jsonb")
            computed_params += [name, name, _encode(operation.values).decode()]
    if len(computed) > _MOST_COMPUTED:
        return None
    data = "t.data"
    data_params: list[Any] = []
    if removed:
        data = f"({data} - %s::text[])"
        data_params.append(removed)
    if replaced:
        data = f"{data} || %s::jsonb"
        data_params.append(_encode(replaced).decode())
    if computed:
        data = f"{data} || jsonb_build_object({', '.join(computed)})"
        data_params += computed_params
    if data != "t.data":
        clauses.append(f"data = {data}")
        params += data_params
    return Assignments(tuple(clauses), tuple(params))


def _sum(name: str, amount: int | float) -> tuple[str, list[Any]]:
    """``operations.add_numbers`` in SQL: exact for whole numbers, IEEE doubles otherwise."""
    number = "COALESCE((t.data ->> %s)::numeric, 0)"
    if isinstance(amount, float):
        return f"to_jsonb({number}::float8 + %s::float8)", [name, amount]
    return (
        f"CASE WHEN {number} = trunc({number}) THEN to_jsonb({number} + %s::numeric)"
        f" ELSE to_jsonb({number}::float8 + %s::float8) END",
        [name, name, name, str(amount), name, float(amount)],
    )


def acl_assignments(acl: Acl | None) -> Assignments:
    """Return the ``SET`` clauses of an access list; none for None."""
    if acl is None:
        return Assignments((), ())
    return Assignments(
        ("read_acl = %s", "write_acl = %s"),
        (
            None if acl.read_ids is None else list(acl.read_ids),
            None if acl.write_ids is None else list(acl.write_ids),
        ),
    )
