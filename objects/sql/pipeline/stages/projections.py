"""The SQL of ``$project``, ``$addFields`` (``$set``) and ``$unset``.

A tree is applied to a value by taking it for an array of one, shaping the elements and taking the
one out again: so each part of the tree is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from objects.core.pipeline.expressions import Expression
from objects.core.pipeline.stages.projections import Exclude, Include, Named, SetFields, Tree
from objects.sql.fragments import Sql
from objects.sql.pipeline.compilation import Compilation, StageSql, sql_of
from objects.sql.pipeline.expressions import expression
from objects.sql.pipeline.jsonb import object_of, text_parameter
from objects.sql.pipeline.rows import DocumentSource, Rows, documents_of, native
from objects.sql.pipeline.sizes import is_within, running_size, size_of

Shape: TypeAlias = Literal["include", "exclude", "set"]
Compute: TypeAlias = Callable[[Expression], Sql]


@sql_of(Include)
class IncludeSql(StageSql[Include]):
    def rows(self, stage: Include, rows: Rows, compilation: Compilation) -> Rows:
        alias = compilation.alias()
        source = compilation.source(rows, alias)
        projector = Projector(
            "include", lambda node: expression(node, source), compilation.limits.document
        )
        parts = projector.parts(stage.tree, lambda name: source.field((name,)))
        if stage.keeps_id and all(name != "objectId" for name, _ in parts):
            parts.append(("objectId", source.field(("objectId",))))
        data = object_of((native(name), value) for name, value in parts)
        return documents_of(compilation.guarded(data, rows, alias) + " AS data", rows, alias)


@sql_of(Exclude)
class ExcludeSql(StageSql[Exclude]):
    def rows(self, stage: Exclude, rows: Rows, compilation: Compilation) -> Rows:
        return _changed("exclude", stage.tree, rows, compilation)


@sql_of(SetFields)
class SetFieldsSql(StageSql[SetFields]):
    def rows(self, stage: SetFields, rows: Rows, compilation: Compilation) -> Rows:
        return _changed("set", stage.tree, rows, compilation)


def _changed(shape: Shape, tree: Tree, rows: Rows, compilation: Compilation) -> Rows:
    alias = compilation.alias()
    rows, source = compilation.documents(rows), DocumentSource(alias)
    projector = Projector(shape, lambda node: expression(node, source), compilation.limits.document)
    parts = projector.parts(tree, lambda name: source.field((name,)))
    replaced = [native(name) for name, _ in tree.parts]
    remaining = "(" + source.data + Sql(" - %s::text[])", (replaced,))
    data = remaining + " || " + object_of((native(name), value) for name, value in parts)
    return documents_of(compilation.guarded(data, rows, alias) + " AS data", rows, alias)


@dataclass(frozen=True, slots=True)
class Projector:
    """Applies trees; ``compute`` gives the SQL of an expression over the whole document.

    ``limit`` is the size of the largest array in which expressions are computed for each element.
    """

    shape: Shape
    compute: Compute
    limit: int

    def parts(self, tree: Tree, read: Callable[[str], Sql]) -> list[tuple[str, Sql]]:
        """Return the parts of a value that are kept or made; ``read`` gives a part as it is."""
        parts = []
        for name, part in tree.parts:
            if isinstance(part, Tree):
                parts.append((name, self.nested(part, read(name))))
            elif not isinstance(part, Named):
                parts.append((name, self.compute(part)))
            elif self.shape == "include":
                parts.append((name, read(name)))
        return parts

    def nested(self, tree: Tree, value: Sql) -> Sql:
        """A value shaped by a tree; NULL where it is missing and nothing is made of that."""
        made = object_of(self.parts(tree, lambda name: "(e.v -> " + text_parameter(name) + ")"))
        if self.shape == "include":
            computes = " OR jsonb_typeof(q.a) IS DISTINCT FROM 'array'" if tree.computes else ""
            shaped = f"CASE WHEN jsonb_typeof(e.v) = 'object'{computes} THEN " + made + " END"
        else:
            remaining = "(e.v - " + Sql("%s::text[])", ([name for name, _ in tree.parts],))
            merged = "CASE WHEN jsonb_typeof(e.v) = 'object' THEN " + remaining + " || " + made
            shaped = merged + (" ELSE e.v END" if self.shape == "exclude" else " ELSE ")
            if self.shape == "set":
                shaped = shaped + made + " END"
        condition = "y.o IS NOT NULL"
        if tree.computes:
            condition = is_within("y.w", self.limit, condition)
        missing = "q.a IS NULL" if self.shape == "exclude" or not self._makes(tree) else "FALSE"
        return (
            f"(SELECT CASE WHEN {missing} THEN NULL WHEN jsonb_typeof(q.a) = 'array' THEN"
            " COALESCE(x.items, '[]'::jsonb) ELSE x.items -> 0 END FROM (SELECT "
            + value
            + " AS a OFFSET 0) AS q CROSS JOIN LATERAL (SELECT jsonb_agg(y.o ORDER BY y.i)"
            f" FILTER (WHERE {condition}) AS items FROM (SELECT z.*, "
            + (running_size(size_of("z.o")) if tree.computes else "0")
            + " AS w FROM (SELECT e.i, "
            + shaped
            + " AS o FROM jsonb_array_elements(CASE WHEN jsonb_typeof(q.a) = 'array' THEN q.a"
            " ELSE jsonb_build_array(COALESCE(q.a, 'null'::jsonb)) END)"
            " WITH ORDINALITY AS e(v, i) OFFSET 0) AS z) AS y) AS x)"
        )

    def _makes(self, tree: Tree) -> bool:
        return self.shape == "set" or tree.computes
