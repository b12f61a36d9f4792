"""Parts of SQL over jsonb values that the aggregation pipeline is put together from.

A value is jsonb; SQL's NULL is a missing one. *Named* values are columns: short text without
parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from backend.kernel.json_types import Json
from objects.sql.fragments import Sql, json_text


def joined(parts: Iterable[Sql], separator: str) -> Sql:
    """Return the parts with a text between them."""
    parts = list(parts)
    text = separator.join(part.text for part in parts)
    return Sql(text, tuple(value for part in parts for value in part.params))


def balanced(parts: Sequence[Sql], join: Callable[[Sql, Sql], Sql]) -> Sql:
    """Return the parts joined in pairs, then the pairs in pairs, and so on.

    From the left, each operation would copy all values before.
    """
    while len(parts) > 1:
        pairs = [parts[index : index + 2] for index in range(0, len(parts), 2)]
        parts = [pair[0] if len(pair) == 1 else join(pair[0], pair[1]) for pair in pairs]
    return parts[0]


def constant(value: Json) -> Sql:
    """A value as jsonb."""
    return Sql("%s::jsonb", (json_text(value),))


def text_parameter(text: str) -> Sql:
    return Sql("%s::text", (text,))


def once(values: Sequence[Sql], body: Sql | str) -> Sql:
    """An expression over values that it names ``a``, ``b``, ``c``… and that are computed once."""
    columns = joined((v + f" AS {n}" for v, n in zip(values, "abcdefgh", strict=False)), ", ")
    return "(SELECT " + body + " FROM (SELECT " + columns + " OFFSET 0) AS q)"


def object_of(fields: Iterable[tuple[str, Sql]]) -> Sql:
    """An object of those of the fields that aren't missing."""
    pairs: list[Sql] = []
    rows: list[Sql] = []
    for name, value in fields:
        if value.text.startswith(_NEVER_MISSING) and len(pairs) < _MOST_PAIRS:
            pairs.append(text_parameter(name) + ", " + value)
        else:
            rows.append("(" + text_parameter(name) + ", " + value + ")")
    parts = []
    if pairs or not rows:
        parts.append("jsonb_build_object(" + joined(pairs, ", ") + ")")
    if rows:
        parts.append(
            "(SELECT COALESCE(jsonb_object_agg(f.k, f.v) FILTER (WHERE f.v IS NOT NULL),"
            " '{}'::jsonb) FROM (VALUES " + joined(rows, ", ") + " OFFSET 0) AS f(k, v))"
        )
    return "(" + joined(parts, " || ") + ")"


# How the text of a value begins that falls back to null, or is a constant.
_NEVER_MISSING = ("COALESCE(to_jsonb(", "%s::jsonb")
# A function has at most 100 arguments.
_MOST_PAIRS = 50


def order_terms(value: str) -> list[str]:
    """Return the sort terms of a named value, each with NULLs first.

    The order is that of ``order_key`` in ``tests.oracles.expressions``.
    """
    return [
        rank(value),
        f"(CASE WHEN jsonb_typeof({value}) = 'number' THEN ({value})::numeric END)",
        f'(({ordered_text(value)}) COLLATE "C")',
        f"(CASE WHEN jsonb_typeof({value}) IN ('object', 'array') THEN {value} END)",
    ]


def rank(value: str) -> str:
    """Return the place of a named value's kind in the order of kinds."""
    return (
        f"(CASE COALESCE(jsonb_typeof({value}), '') WHEN '' THEN -1 WHEN 'null' THEN 0"
        " WHEN 'number' THEN 1 WHEN 'string' THEN 2 WHEN 'array' THEN 4 WHEN 'boolean' THEN 5"
        f" ELSE CASE WHEN ({value})->>'__type' = 'Date' THEN 6 ELSE 3 END END"
        f" + CASE WHEN ({value}) = 'true'::jsonb THEN 0.5 ELSE 0 END)"
    )


def ordered_text(value: str) -> str:
    return (
        f"CASE jsonb_typeof({value}) WHEN 'string' THEN ({value})#>>'{{}}'"
        f" WHEN 'object' THEN CASE WHEN ({value})->>'__type' = 'Date'"
        f" THEN ({value})->>'iso' END END"
    )


def quotient(a: str, b: str) -> str:
    """Return the quotient of two named numerics, as numeric."""
    bounds = "BETWEEN 1e-140 AND 1e140"
    return (
        f"(CASE WHEN abs({b}) {bounds} AND ({a} = 0 OR abs({a}) {bounds})"
        f" THEN (({a})::float8 / ({b})::float8)::text::numeric END)"
    )


def step(value: Sql, name: str) -> Sql:
    """What ``value_at`` finds one step further."""
    key = text_parameter(name)
    inside = (
        "(SELECT COALESCE(jsonb_agg(e.v -> " + key + " ORDER BY e.i) FILTER (WHERE (e.v -> " + key
    ) + ") IS NOT NULL), '[]'::jsonb) FROM jsonb_array_elements(a) WITH ORDINALITY AS e(v, i))"
    return once(
        [value], "CASE WHEN jsonb_typeof(a) = 'array' THEN " + inside + " ELSE a -> " + key + " END"
    )
