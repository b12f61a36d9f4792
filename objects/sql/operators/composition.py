"""SQL of constraints of constraints."""

from __future__ import annotations

from objects.core.query.operators.composition import AllOf, AnyOf, Everything, NoneOf, Nothing
from objects.sql.fragments import FALSE, TRUE, Sql, both, either, negation
from objects.sql.operators.compilation import Compilation, OperatorSql, sql_of


@sql_of(Everything)
class EverythingSql(OperatorSql[Everything]):
    def condition(self, node: Everything, compilation: Compilation) -> Sql:
        return TRUE


@sql_of(Nothing)
class NothingSql(OperatorSql[Nothing]):
    def condition(self, node: Nothing, compilation: Compilation) -> Sql:
        return FALSE


@sql_of(AllOf)
class AllOfSql(OperatorSql[AllOf]):
    def condition(self, node: AllOf, compilation: Compilation) -> Sql:
        return both(map(compilation.compile, node.parts))

    def required(self, node: AllOf, compilation: Compilation) -> Sql:
        return both(map(compilation.required, node.parts))


@sql_of(AnyOf)
class AnyOfSql(OperatorSql[AnyOf]):
    def condition(self, node: AnyOf, compilation: Compilation) -> Sql:
        return either(map(compilation.compile, node.parts))


@sql_of(NoneOf)
class NoneOfSql(OperatorSql[NoneOf]):
    def condition(self, node: NoneOf, compilation: Compilation) -> Sql:
        return negation(either(map(compilation.compile, node.parts)))
