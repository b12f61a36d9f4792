"""Checks of sizes in SQL: pipelines stop before they make what is too large.

An error is what ``repeat`` raises for a text of more than a gigabyte, before it makes any of it:
``program_limit_exceeded``. No function has to be defined for it.
"""

from __future__ import annotations

from typing import Final

from objects.core.pipeline.costs import CONTAINER as _CONTAINER
from objects.sql.fragments import Sql
from objects.sql.tables import ClassTable

_OVERHEAD: Final = 40  # bytes of each value in an array
# Documents up to this part of the limit can't be beyond it, since each container takes at
# least eight bytes of jsonb.
_PLAIN: Final = 16
# PostgreSQL's compression makes values at most 256 times as small.
_COMPRESSION: Final = 256


def guarded(value: Sql, is_too_large: str, size: str, kind: str) -> Sql:
    """Return a value of an SQL type, or an error under a condition.

    ``size`` is any expression that isn't a constant: PostgreSQL computes constants when it plans.
    """
    return f"(CASE WHEN {is_too_large} THEN {_error(size, kind)} ELSE " + value + " END)"


def _error(size: str, kind: str) -> str:
    text = f"repeat(({size})::text, 2147483647)"
    return f"to_jsonb({text})" if kind == "jsonb" else f"({text})::{kind}"


def is_array_beyond(array: str, limit: int) -> str:
    """Return the condition that jsonb of an SQL array's values would be larger than the limit.

    The values are measured one by one: the text of an array takes a kilobyte for each.
    """
    size = f"pg_column_size({array})"
    total = f"(SELECT sum({size_of('e.v')}) FROM unnest({array}) AS e(v))"
    return f"{size} > {limit} OR ({size} > {limit // _PLAIN} AND {total} > {limit})"


def document_guard(value: Sql, alias: str, limit: int, kind: str = "jsonb") -> Sql:
    """Return a value that is computed of a document, unless that is larger than the limit."""
    size = f"pg_column_size({alias}.data)"
    data = f"{alias}.data"
    with_containers = f"{size} > {limit // _PLAIN} AND {size} + {_containers(data)} > {limit}"
    return guarded(value, f"{size} > {limit} OR ({with_containers})", size, kind)


def object_guard(value: Sql, table: ClassTable, alias: str, limit: int, kind: str = "jsonb") -> Sql:
    """Return a value that is computed of a row, unless that is larger than the limit.

    Columns may be compressed: those that may be large in fact are decompressed, as they are to
    read them. The concatenation with an empty object copies nothing.
    """
    plain = limit // _PLAIN
    least = plain // _COMPRESSION
    tests = []
    for name in ("data", *(c.name for c in table.stored_columns.values() if c.type == "jsonb")):
        column = f"{alias}.{name}"
        size = f"pg_column_size({column} || '{{}}'::jsonb)"
        tests.append(
            f"(pg_column_size({column}) > {least} AND {size} > {plain}"
            f" AND {size} + {_containers(column)} > {limit})"
        )
    for column_ in table.stored_columns.values():
        if column_.type == "text":
            tests.append(f"octet_length({alias}.{column_.name}) > {limit}")
    return guarded(value, " OR ".join(tests), f"pg_column_size({alias}.data)", kind)


def running_size(*sizes: str) -> str:
    """Return the size of the values up to a row: a window over rows as they arrive."""
    return f"sum({' + '.join(sizes)}) OVER (ROWS UNBOUNDED PRECEDING)"


def size_of(value: str, *, is_decompressed: bool = True, is_put_together: bool = True) -> str:
    """Return the bytes that a named value adds to an array.

    ``is_put_together`` is for an array of jsonb, in which containers count in addition.
    """
    size = f"pg_column_size({value})" if is_decompressed else f"octet_length(({value})::text)"
    if not is_put_together:
        return f"COALESCE({size} + {_OVERHEAD}, 0)"
    is_container = f"jsonb_typeof({value}) IN ('object', 'array')"
    containers = f"CASE WHEN {is_container} THEN {_containers(value)} ELSE 0 END"
    return f"COALESCE({size} + {_OVERHEAD} + {containers}, 0)"


def _containers(value: str) -> str:
    """Return what the objects and arrays in a value take in addition, while jsonb is put together.

    It is 600 bytes for each, however short, which is six times 100. Braces in texts count as well.
    """
    return (
        f"(SELECT {_CONTAINER} * (2 * octet_length(t.t) - octet_length(replace(t.t, '{{', ''))"
        f" - octet_length(replace(t.t, '[', ''))) FROM (SELECT ({value})::text AS t OFFSET 0) AS t)"
    )


def is_within(running: str, limit: int, condition: str = "TRUE") -> str:
    """Return a condition that raises an error if the running size is beyond the limit."""
    return guarded(Sql(condition), f"{running} > {limit}", running, "boolean").text
