"""The SQL of ``$group``.

Three SELECTs inside of each other: what is accumulated of each document, the groups, and the
document of each group.
"""

from __future__ import annotations

from typing import Final

from objects.core.pipeline.stages.groups import Group
from objects.sql.fragments import Sql
from objects.sql.pipeline import accumulators
from objects.sql.pipeline.compilation import Compilation, StageSql, sql_of
from objects.sql.pipeline.expressions import expression
from objects.sql.pipeline.jsonb import joined, object_of, once, order_terms
from objects.sql.pipeline.rows import Order, Rows, from_rows
from objects.sql.pipeline.sizes import running_size, size_of

_ID_OF_POINTER: Final = "CASE WHEN a->>'__type' = 'Pointer' THEN a->'objectId' ELSE a END"


@sql_of(Group)
class GroupSql(StageSql[Group]):
    def rows(self, stage: Group, rows: Rows, compilation: Compilation) -> Rows:
        alias = compilation.alias()
        inputs = from_rows(rows, alias)
        key_columns = [compilation.new_column() for _ in order_terms("m.k")]
        source = compilation.source(rows, alias)
        columns_of_table = {} if rows.table is None else rows.table.columns
        is_decompressed = all(column.type != "jsonb" for column in columns_of_table.values())
        key = expression(stage.key, source)
        if stage.key_is_field:
            key = once([key], _ID_OF_POINTER)
        key = compilation.guarded("COALESCE(" + key + ", 'null'::jsonb)", rows, alias)
        values = [key + " AS k"]
        sizes, limit = [], compilation.limits.collected
        groups = ["g.k"]
        made: list[tuple[str, Sql]] = [("_id", Sql("m.k"))]
        for index, (name, accumulator) in enumerate(stage.fields):
            columns = accumulators.Columns(f"g.v{index}", f"m.a{index}", rows.order, limit)
            reading = accumulators.READINGS[accumulator.name]
            accumulated = reading.accumulated(accumulator, source, columns)
            values.append(accumulated.value + f" AS v{index}")
            if reading.collects:
                sizes.append(
                    reading.size(
                        size_of(
                            f"d.v{index}",
                            is_decompressed=is_decompressed,
                            is_put_together=reading.puts_together,
                        )
                    )
                )
            groups.append(f"{accumulated.group} AS a{index}")
            made.append((name, Sql(accumulated.document)))
        values += [Sql(f"{alias}.{key.column}") for key in rows.order]
        keys = ", ".join(
            f"{term} AS {column}"
            for term, column in zip(order_terms("m.k"), key_columns, strict=True)
        )
        # OFFSET 0: accumulated values are computed once per document even if several expressions
        # read them, and groups are hashed instead of sorting whole rows. The documents of groups
        # are computed once as well.
        read = "SELECT " + joined(values, ", ") + inputs + " OFFSET 0"
        if sizes:
            read = f"SELECT d.*, {running_size(*sizes)} AS size FROM (" + read + ") AS d"
        select = (
            "SELECT "
            + object_of(made)
            + f" AS data, {keys} FROM (SELECT {', '.join(groups)} FROM ("
            + read
            + ") AS g GROUP BY g.k) AS m OFFSET 0"
        )
        return Rows(select, None, tuple(Order(column) for column in key_columns))
