"""Tests of one field or path in SQL: what ``objects.sql.compiler`` puts queries together from.

A *candidate* and an *element* are defined in ``objects.core.query.tree``. A field of a single kind
is tested without looking for elements; any other path is tested by jsonpath.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from backend.kernel.json_types import Json
from objects.core.query.tree import Comparison, Path, Steps
from objects.core.values import kind, pointer
from objects.sql import index_of_all, jsonpath
from objects.sql.fields import SHORT, Reading, read
from objects.sql.fragments import FALSE, Sql, both, either, json_text, negation
from objects.sql.tables import ClassTable

_SIGNS: Final = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_LONG_LIST: Final = 1000
"""From here on a list of values is hashed by PostgreSQL, not written out in a jsonpath."""
_BIGINT: Final = 2**63

# --- one value -----------------------------------------------------------------------------


def fits(value: Json, reading: Reading) -> bool:
    """Return whether a field may hold this value at all."""
    if kind(value) != reading.kind and not (
        reading.kind == "Relation" and kind(value) == "Pointer"
    ):
        return False
    if isinstance(value, dict) and reading.kind in ("Pointer", "Relation"):
        return value["className"] == reading.target_class
    return True


def operand_of(value: Json, reading: Reading) -> Json:
    """Return what a value is compared as: the text for a pointer field is an object id."""
    if isinstance(value, str) and reading.is_whole and reading.kind == "Pointer":
        return pointer(reading.target_class or "", value)
    return value


def or_null(reading: Reading) -> str:
    if reading.column is not None and reading.column.type != "jsonb":
        return reading.name or reading.json
    if reading.is_indexed and reading.typed is not None and reading.kind in _OPERANDS:
        # What its index holds, which then finds those without a value too.
        return reading.typed
    return f"NULLIF({reading.json}, 'null'::jsonb)"


def single_value(reading: Reading, values: list[Json]) -> Sql:
    """A field of a single kind has one of the values, all of which fit."""
    if not values:
        return FALSE
    is_typed = reading.typed is not None and reading.kind in _OPERANDS
    if is_typed and (reading.is_indexed or len(values) > _LONG_LIST):
        return _typed_equality(reading, values)
    if len(values) == 1 and reading.column is None:
        return index_of_all.contains(reading, json_text({reading.steps[0]: values[0]}))
    return equals_element(reading, values)


def _typed_equality(reading: Reading, values: list[Json]) -> Sql:
    cast = _cast(reading)
    if cast == "bigint":
        values = [value for value in values if _is_bigint(value)]
        if not values:
            return FALSE
    # Equality needs no collation, and an index on a column may have any.
    left = reading.typed if reading.name is None else reading.name
    operands = [_operand(value) for value in values]
    if len(operands) == 1:
        return Sql(f"({left} = %s::{cast})", (operands[0],))
    return Sql(f"({left} = ANY(%s::text[]::{cast}[]))", (operands,))


def led_equality(reading: Reading, value: Json) -> Sql | None:
    """The field equals a value, in its learned index's expression; None if not expressible.

    The value isn't null.
    """
    value = operand_of(value, reading)
    if not fits(value, reading) or reading.typed is None or reading.kind not in _OPERANDS:
        return None
    if reading.kind != "String" or reading.column is not None:
        return _typed_equality(reading, [value])
    if reading.short is None or not is_short(value):
        return None
    return Sql(f"({reading.short} = %s::text)", (value,))


def is_short(value: Json) -> bool:
    """Return whether a text compares with a String as with its beginning."""
    return isinstance(value, str) and len(value) < SHORT


def comparison(reading: Reading, op: Comparison, value: Json) -> Sql:
    """The field is before or after a value of its kind."""
    sign = _SIGNS[op]
    cast, left = _cast(reading), reading.typed
    if reading.sorts_by_short and is_short(value):
        left = reading.short
    if cast == "bigint" and not _is_bigint(value):
        cast, left = "numeric", f"({left})::numeric"
    return Sql(f"({left} {sign} %s::{cast})", (_operand(value),))


_OPERANDS: Final = {
    "String": "text",
    "Number": "numeric",
    "Boolean": "jsonb",
    "Date": "text",
    "Pointer": "text",
}


def _cast(reading: Reading) -> str:
    if reading.column is not None and reading.column.type != "jsonb":
        return reading.column.type
    return _OPERANDS[reading.kind or ""]


def _is_bigint(value: Json) -> bool:
    return isinstance(value, int) and -_BIGINT <= value < _BIGINT


def _operand(value: Json) -> str:
    if isinstance(value, dict):
        return str(value["iso"] if value["__type"] == "Date" else value["objectId"])
    return value if isinstance(value, str) else json_text(value)


# --- any path ------------------------------------------------------------------------------


def whole_value(reading: Reading) -> Sql:
    """Return the one candidate of a whole field or of an exact path."""
    if not reading.steps:
        return Sql(reading.base)
    if reading.is_whole and reading.kind is not None:
        return Sql(reading.json)
    return Sql(f"({reading.base} #> %s::text[])", (list(reading.steps),))


def start(reading: Reading) -> tuple[Sql, Steps]:
    """A jsonb value, and the steps from there that a jsonpath can take."""
    if reading.is_exact:
        return whole_value(reading), ()
    return Sql(reading.base), reading.steps


def has_element(reading: Reading, condition: str) -> Sql:
    value, steps = start(reading)
    return "(" + value + Sql(" @? %s::jsonpath)", (jsonpath.filtered(steps, condition),))


def equals_element(reading: Reading, values: Sequence[Json]) -> Sql:
    """Some element equals one of some simple values; at least one."""
    condition = jsonpath.equals_any(values)
    if reading.column is not None or reading.is_exact:
        return has_element(reading, condition)
    return index_of_all.has_match(reading, jsonpath.filtered(reading.steps, condition))


def is_missing_or_null(reading: Reading) -> Sql:
    value, steps = start(reading)
    is_present = "(" + value + Sql(" @? %s::jsonpath)", (jsonpath.path(steps),))
    return either([negation(is_present), has_element(reading, jsonpath.equals(None))])


def each_element(reading: Reading, condition: str, test: Callable[[str], Sql | str]) -> Sql:
    """Some element fulfils the jsonpath condition and the test, which gets its SQL name."""
    value, steps = start(reading)
    rows = Sql("%s::jsonpath", (jsonpath.filtered(steps, condition),))
    return _exists(value, rows, test("c"))


def each_candidate(reading: Reading, test: Callable[[str], Sql | str], depth: int = 0) -> Sql:
    """Some candidate (``depth`` 1: some element of a candidate) fulfils the test."""
    value, steps = start(reading)
    path = jsonpath.path(steps) + "[*]" * depth
    return _exists(value, Sql("%s::jsonpath", (path,)), test("c"))


def _exists(value: Sql, path: Sql, test: Sql | str) -> Sql:
    rows = "jsonb_path_query(" + value + ", " + path + ") AS c"
    return "EXISTS (SELECT 1 FROM " + rows + " WHERE " + test + ")"


def any_element(reading: Reading, values: list[Json]) -> Sql:
    """Some element equals one of the values, none of them null; the kinds are open."""
    simple = [value for value in values if jsonpath.is_simple(value)]
    compound = [value for value in values if not jsonpath.is_simple(value)]
    if len(simple) > _LONG_LIST:
        compound += [value for value in simple if not _is_file(value)]
        simple = [value for value in simple if _is_file(value)]
    parts = []
    if simple:
        if len(simple) == 1 and reading.is_whole and reading.kind == "Array" and not reading.column:
            parts.append(index_of_all.contains(reading, json_text({reading.steps[0]: simple})))
        else:
            parts.append(equals_element(reading, simple))
    if compound:
        if reading.is_whole and reading.kind in ("Object", "Polygon"):
            parts.append(_whole_equality(reading, compound))
        else:
            test = Sql("c = ANY(%s::text[]::jsonb[])", ([json_text(value) for value in compound],))
            parts += [each_candidate(reading, lambda _c: test, depth) for depth in (0, 1)]
    return either(parts)


def _whole_equality(reading: Reading, values: list[Json]) -> Sql:
    same = Sql(
        f"({reading.json} = ANY(%s::text[]::jsonb[]))", ([json_text(value) for value in values],)
    )
    if reading.column is not None or len(values) > 1:
        return same
    contained = json_text({reading.steps[0]: values[0]})
    return both([index_of_all.contains(reading, contained), same])


def is_subset(candidate: str, values: Sequence[Json]) -> Sql:
    """The candidate is a list, and each of its elements equals one of the values."""
    files = [str(value["name"]) for value in values if isinstance(value, dict) and _is_file(value)]
    json_texts = [json_text(value) for value in values if not _is_file(value)]
    return Sql(
        f"jsonb_typeof({candidate}) = 'array' AND NOT EXISTS (SELECT 1 FROM"
        f" jsonb_path_query({candidate}, '$[*]') AS e WHERE (e = ANY(%s::text[]::jsonb[])"
        " OR (e->>'__type' = 'File' AND e->>'name' = ANY(%s::text[]))) IS NOT TRUE)",
        (json_texts, files),
    )


def _is_file(value: Json) -> bool:
    # Files are equal by name, not in all that is stored.
    return kind(value) == "File"


def selected_values(key: Path, table: ClassTable, alias: str) -> Sql:
    """Return a set-returning column of the values at a path of a sub-query; some may be null.

    A list stands for its elements.
    """
    reading = read(table, key, alias)
    if reading.is_whole and reading.kind != "Array":
        return Sql(reading.json)
    value, steps = start(reading)
    # In lax mode [*] of what isn't a list is the value itself.
    path = f"{jsonpath.path(steps)}[*]"
    return "jsonb_path_query(" + value + Sql(", %s::jsonpath)", (path,))
