"""The compilation of one constraint tree, and the registry of the operators' SQL.

The SQL of an operator is one class derived from ``OperatorSql``, registered for its node class by
``sql_of``. ``objects.sql.compiler`` checks at import that no node class lacks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, Generic, Protocol, TypeVar

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects.core.names import ClassName, FieldName
from objects.core.query.tree import Path, Query, SubQuery, all_of
from objects.sql.fields import SINGLE_KINDS, Reading, read
from objects.sql.fragments import FALSE, TRUE, Sql, either
from objects.sql.order import order_by
from objects.sql.registration import register
from objects.sql.tables import ClassTable
from objects.sql.values import (
    any_element,
    fits,
    is_missing_or_null,
    operand_of,
    or_null,
    single_value,
)

RELATIONS: Final = "objects_relation"
"""Members of relations: class_id, key, owning_id, related_id."""
NO_FIELDS: Final[frozenset[FieldName]] = frozenset()


class Scope(Protocol):
    """The other classes that a query may look into, as the caller may see them."""

    def table(self, class_name: ClassName) -> tuple[ClassTable, Query] | None:
        """A class's table, and what else its rows must fulfil; None if there is none."""

    def redirected(self, class_name: ClassName, key: FieldName) -> ClassName:
        """The class that a relation leads to; the class itself if it has no such relation."""


N = TypeVar("N", bound=Query)


class OperatorSql(Generic[N]):
    """The SQL of one class of nodes. Instances have no state."""

    def condition(self, node: N, compilation: Compilation) -> Sql:
        """Return the condition that exactly the rows fulfil that the node finds."""
        raise NotImplementedError

    def required(self, node: N, compilation: Compilation) -> Sql:
        """As ``condition``, for what each row must fulfil."""
        return self.condition(node, compilation)


READINGS: Final[dict[type[Query], OperatorSql[Query]]] = {}
"""The SQL of each class of nodes; filled by ``sql_of``."""

R = TypeVar("R", bound=OperatorSql)


def sql_of(*nodes: type[Query]) -> Callable[[type[R]], type[R]]:
    """Register the SQL of classes of nodes. Raises ``TypeError`` for one that has its SQL."""
    return register(READINGS, nodes)


@dataclass(frozen=True, slots=True)
class Compilation:
    """What conditions are compiled with: a table, its alias, and the classes of sub-queries."""

    table: ClassTable
    alias: str
    scope: Scope
    names: Iterator[int] = field(default_factory=count)
    led: frozenset[FieldName] = NO_FIELDS
    """Fields whose equality leads into a learned index."""
    served: frozenset[FieldName] = NO_FIELDS
    """Fields behind the first of a declared index that the query leads to."""

    def required(self, node: Query) -> Sql:
        """As ``compile``, for what each row must fulfil.

        Only there does PostgreSQL make a join of the conditions of computed fields; in alternatives
        and negations their values are faster.
        """
        return READINGS[type(node)].required(node, self)

    def compile(self, node: Query) -> Sql:
        """Return the condition of a node."""
        return READINGS[type(node)].condition(node, self)

    def computed_condition(self, path: Path, values: Sequence[Json]) -> Sql | None:
        """``Column.one_of`` of a computed field, where it has one for these values."""
        column = self.table.columns.get(path[0]) if len(path) == 1 and self.alias else None
        if column is None or column.one_of is None or None in values:
            return None
        self.check_values(path, values)
        condition = column.one_of(frozenset(value for value in values if isinstance(value, str)))
        return None if condition is None else Sql(condition.replace("{row}", self.alias))

    def check_values(self, path: Path, values: Sequence[Json]) -> None:
        """Raise ``InvalidQuery`` for a value that a computed field never has."""
        column = self.table.columns.get(path[0]) if len(path) == 1 else None
        if column is None or not column.values:
            return
        if any(value is not None and value not in column.values for value in values):
            *leading, last = column.values
            raise InvalidQuery(f"where.{path[0]}: expected {', '.join(leading)} or {last}")

    def read(self, path: Path) -> Reading:
        """How a path is read in this table."""
        reading = read(self.table, path, self.alias)
        if path[0] in self.served and reading.is_whole:
            return replace(reading, is_indexed=True)
        return reading

    def any_value(self, path: Path, values: Sequence[Json]) -> Sql:
        """Some element equals one of the values."""
        if not values:
            return FALSE
        self.check_values(path, values)
        reading = self.read(path)
        if reading.is_whole and reading.kind == "Relation":
            return self.any_member(path[0], values, reading)
        has_null = any(value is None for value in values)
        non_null: list[Json] = [value for value in values if value is not None]
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            operands = [operand_of(value, reading) for value in non_null]
            non_null = [value for value in operands if fits(value, reading)]
            missing = Sql(f"({or_null(reading)} IS NULL)") if has_null else FALSE
            return either([missing, single_value(reading, non_null)])
        parts = []
        if has_null:
            parts.append(is_missing_or_null(reading))
        if non_null:
            parts.append(any_element(reading, non_null))
        return either(parts)

    def any_member(self, key: str, values: Sequence[Json], reading: Reading) -> Sql:
        """Some member of a relation equals one of the values; null equals none."""
        ids = [
            value["objectId"]
            for value in values
            if isinstance(value, dict)
            and value.get("__type") == "Pointer"
            and value["className"] == reading.target_class
        ]
        if not ids:
            return FALSE
        return self.members(key, Sql("r.related_id = ANY(%s::text[])", (ids,)))

    def members(self, key: str, condition: Sql = TRUE) -> Sql:
        """The row's relation has members, such that the condition (on ``r``) holds."""
        joined = Sql(
            f"SELECT 1 FROM {RELATIONS} AS r WHERE r.class_id = %s AND r.key = %s"
            f" AND r.owning_id = {self.alias}.object_id",
            (self.table.class_id, key),
        )
        return "EXISTS (" + (joined if condition is TRUE else joined + " AND " + condition) + ")"

    def queried_class(self, query: SubQuery) -> ClassName:
        """The class whose objects a sub-query finds."""
        if query.redirect_key is None:
            return query.class_name
        return self.scope.redirected(query.class_name, query.redirect_key)

    def subquery(self, query: SubQuery, column: Callable[[ClassTable, str], Sql]) -> Sql | None:
        """A parenthesised SELECT of one column; None if the class isn't there."""
        target = self.scope.table(self.queried_class(query))
        if target is None:
            return None
        table, rights = target
        alias = f"s{next(self.names)}"
        where = all_of(query.where, rights)
        condition = Compilation(table, alias, self.scope, self.names).compile(where)
        value = column(table, alias)
        if query.limit is None and not query.skip:
            return (
                "(SELECT " + value + f" FROM {table.relation} AS {alias} WHERE " + condition + ")"
            )
        return (
            f"(SELECT {alias}.value FROM (SELECT "
            + value
            + f" AS value FROM (SELECT {alias}.* FROM {table.relation} AS {alias} WHERE "
            + condition
            + " "
            + order_by(query.order, table, alias, query.where)
            + Sql(" LIMIT %s OFFSET %s", (query.limit, query.skip))
            + f") AS {alias}) AS {alias})"
        )
