"""The aggregation pipeline as one SQL statement, tested against ``tests.oracles.pipelines``.

``$match``, ``$sort``, ``$limit`` and ``$skip`` at the beginning work on the class's own rows and
are as fast as a find. Client values are always parameters.
"""

from __future__ import annotations

from collections.abc import Collection

from objects.core.pipeline import accumulators
from objects.core.pipeline.costs import limits_of
from objects.core.pipeline.expressions import Operator
from objects.core.pipeline.operators import registry as operators
from objects.core.pipeline.parser import Aggregation
from objects.core.pipeline.paths import Path
from objects.core.pipeline.stage import Stage
from objects.core.pipeline.stages import registry as stages
from objects.sql.compiler import Scope
from objects.sql.fragments import Sql
from objects.sql.pipeline import accumulators as accumulators_sql
from objects.sql.pipeline import compilation, expressions
from objects.sql.pipeline.compilation import Compilation
from objects.sql.pipeline.jsonb import once, order_terms
from objects.sql.pipeline.operators import arrays, conditions, dates, numbers, texts
from objects.sql.pipeline.rows import Rows, from_rows, order_clause, wire_document
from objects.sql.pipeline.stages import groups, joins, projections, selection
from objects.sql.tables import ClassTable

# Importing these registers their classes.
_REGISTERED = (arrays, conditions, dates, numbers, texts, groups, joins, projections, selection)


def check_complete(
    stage_nodes: Collection[type[Stage]],
    operator_classes: Collection[type[Operator]],
    accumulations: Collection[type[accumulators.Accumulation]],
) -> None:
    """Raise ``TypeError`` that names a stage, operator or accumulator without SQL."""
    lacking = [node.__name__ for node in stage_nodes if node not in compilation.READINGS]
    for registered, readings in (
        (operator_classes, expressions.READINGS),
        (accumulations, accumulators_sql.READINGS),
    ):
        lacking += [name for each in registered for name in each.names if name not in readings]
    if lacking:
        raise TypeError(f"no SQL of {', '.join(lacking)}")


check_complete(
    stages.NODES,
    [each for each in operators.REGISTERED if each not in operators.CONSTANTS],
    [each for each in accumulators.REGISTERED if each is not accumulators.Count],
)


def compile_aggregation(aggregation: Aggregation, table: ClassTable, scope: Scope) -> Sql:
    """Return the statement that gives the results, in order, in one jsonb column ``value``.

    It fails with ``program_limit_exceeded`` before it makes values that are too large. Raises
    ``InvalidQuery`` for a pipeline that has no room for any documents.
    """
    compiling = Compilation(scope, limits_of(aggregation.stages))
    rows = compiling.objects(table, aggregation.where)
    if aggregation.distinct is not None:
        return _distinct(rows, aggregation.distinct, compiling)
    rows = compiling.documents(compiling.run(rows, aggregation.stages))
    plain = "CASE WHEN {0}->>'__type' = 'Date' THEN {0}->'iso' ELSE {0} END"
    alias = compiling.alias()
    value = Sql(f"{alias}.data")
    if not aggregation.raw_field_names:
        value = wire_document(value, "{0}" if aggregation.raw_values else plain)
    value = compiling.guarded(value, rows, alias)
    return "SELECT " + value + " AS value" + from_rows(rows, alias) + order_clause(rows, alias)


def _distinct(rows: Rows, path: Path, compiling: Compilation) -> Sql:
    alias = compiling.alias()
    elements = once(
        [compiling.source(rows, alias).field(path)],
        "CASE WHEN jsonb_typeof(a) = 'array' THEN a WHEN a IS NULL THEN '[]'::jsonb"
        " ELSE jsonb_build_array(a) END",
    )
    return (
        "SELECT m.v AS value FROM (SELECT DISTINCT u.v"
        + from_rows(rows, alias)
        + " CROSS JOIN LATERAL jsonb_array_elements("
        + elements
        + ") AS u(v) WHERE u.v <> 'null'::jsonb) AS m ORDER BY "
        + ", ".join(f"{term} ASC NULLS FIRST" for term in order_terms("m.v"))
    )
