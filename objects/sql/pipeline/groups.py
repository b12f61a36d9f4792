"""``$group`` of the aggregation pipeline in SQL.

Three SELECTs inside of each other: what is accumulated of each document, the groups, and the
document of each group.
"""

from __future__ import annotations

from collections.abc import Sequence

from objects.core.pipeline.expressions import Expression, Field, Literal
from objects.core.pipeline.stages import Accumulator, Group
from objects.sql.fragments import Sql
from objects.sql.pipeline.expressions import Source, expression, number, number_json
from objects.sql.pipeline.jsonb import joined, object_of, order_terms, quotient
from objects.sql.pipeline.rows import Order


def group_select(
    stage: Group,
    source: Source,
    inputs: Sql,
    alias: str,
    order: Sequence[Order],
    key_columns: Sequence[str],
) -> Sql:
    """Return the documents of the groups, with columns that put them in the order of their keys.

    ``inputs`` is the FROM clause of the documents to group, under ``alias``.
    """
    values = ["COALESCE(" + expression(stage.key, source) + ", 'null'::jsonb) AS k"]
    groups = ["g.k"]
    made: list[tuple[str, Sql]] = [("_id", Sql("m.k"))]
    for index, (name, accumulator) in enumerate(stage.fields):
        value, group, document = _accumulated(
            accumulator, source, f"g.v{index}", f"m.a{index}", order
        )
        values.append(value + f" AS v{index}")
        groups.append(f"{group} AS a{index}")
        made.append((name, Sql(document)))
    values += [Sql(f"{alias}.{key.column}") for key in order]
    keys = ", ".join(
        f"{term} AS {column}" for term, column in zip(order_terms("m.k"), key_columns, strict=True)
    )
    inner = joined(values, ", ")
    # OFFSET 0: accumulated values are computed once per document even if several expressions read
    # them, and groups are hashed instead of sorting whole rows.
    return (
        "SELECT "
        + object_of(made)
        + f" AS data, {keys} FROM (SELECT {', '.join(groups)} FROM (SELECT "
        + inner
        + inputs
        + " OFFSET 0) AS g GROUP BY g.k) AS m"
    )


def _accumulated(
    accumulator: Accumulator, source: Source, value: str, group: str, order: Sequence[Order]
) -> tuple[Sql, str, str]:
    """What to take of a document, to make of a group's values, and to put into its document."""
    operand = accumulator.operand
    match accumulator.name:
        case "$sum":
            total = f"COALESCE(to_jsonb(trim_scale(sum({value}))), '0'::jsonb)"
            return number(operand, source), total, group
        case "$avg":
            mean = quotient(f"sum({value})", f"count({value})::numeric")
            return number(operand, source), number_json(mean).text, group
        case "$min" | "$max":
            return *_extreme(accumulator.name.removeprefix("$"), operand, source, value), group
        case "$first" | "$last":
            terms = ", ".join(key.term("g", reverse=accumulator.name == "$last") for key in order)
            by = f" ORDER BY {terms}" if terms else ""
            first = f"COALESCE((array_agg({value}{by}))[1], 'null'::jsonb)"
            return expression(operand, source), first, group
        case "$push":
            terms = ", ".join(key.term("g") for key in order)
            by = f" ORDER BY {terms}" if terms else ""
            filled = f" FILTER (WHERE {value} IS NOT NULL)"
            pushed = f"COALESCE(jsonb_agg({value}{by}){filled}, '[]'::jsonb)"
            return expression(operand, source), pushed, group
        case _:
            distinct = f"array_agg(DISTINCT {value}) FILTER (WHERE {value} IS NOT NULL)"
            terms = ", ".join(f"{term} ASC NULLS FIRST" for term in order_terms("e.v"))
            array = (
                f"(SELECT COALESCE(jsonb_agg(e.v ORDER BY {terms}), '[]'::jsonb)"
                f" FROM unnest({group}) AS e(v))"
            )
            return expression(operand, source), distinct, array


def _extreme(function: str, operand: Expression, source: Source, value: str) -> tuple[Sql, str]:
    """Return the least or greatest value, by a native function where the kind is known."""
    if isinstance(operand, Literal) or _is_known(operand, source, "Number"):
        return number(operand, source), number_json(f"{function}({value})").text
    typed = source.typed(operand.path, "String") if isinstance(operand, Field) else None
    if typed is not None:
        return typed, f"COALESCE(to_jsonb({function}({value})), 'null'::jsonb)"
    if _is_known(operand, source, "Date"):
        iso = "((" + expression(operand, source) + """ ->> 'iso') COLLATE "C")"""
        extreme = f"{function}({value})"
        date = f"jsonb_build_object('__type', 'Date', 'iso', {extreme})"
        return iso, f"CASE WHEN {extreme} IS NULL THEN 'null'::jsonb ELSE {date} END"
    direction = "ASC NULLS FIRST" if function == "min" else "DESC NULLS LAST"
    terms = ", ".join(f"{term} {direction}" for term in order_terms(value))
    present = f"FILTER (WHERE {value} IS NOT NULL AND {value} <> 'null'::jsonb)"
    first = f"(array_agg({value} ORDER BY {terms}) {present})[1]"
    return expression(operand, source), f"COALESCE({first}, 'null'::jsonb)"


def _is_known(operand: Expression, source: Source, kind: str) -> bool:
    return (
        isinstance(operand, Field)
        and bool(operand.path)
        and source.typed(operand.path, kind) is not None  # type: ignore[arg-type]
    )
