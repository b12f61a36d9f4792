"""From the constraint tree to SQL: the same meaning as ``objects.core.query.predicate``, by
PostgreSQL.

``compile_query`` gives a condition on the rows of a class's table. Of what a client wrote nothing
is ever in the text: values, keys and patterns are parameters. The text depends on the shape of a
query only, so a prepared statement serves every query of that shape.

How indexes are met: equality by containment or a jsonpath, both for the index of all fields
(``index_of_all``); ranges, prefixes and orders by ``field_expression``, and so
equality on the leading fields of a declared index. Promoted columns are compared as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Final

from objects.core.indexes.shapes import led_by_constants
from objects.core.names import ClassName, FieldName
from objects.core.query.operators.registry import NODES
from objects.core.query.tree import Query
from objects.sql.fragments import Sql
from objects.sql.operators import (
    access_lists,
    comparison,
    composition,
    geo,
    membership,
    subqueries,
    text,
)
from objects.sql.operators.compilation import NO_FIELDS, READINGS, Compilation, Scope
from objects.sql.order import order_by, score_expression
from objects.sql.tables import ClassTable

_MODULES: Final = (access_lists, comparison, composition, geo, membership, subqueries, text)
"""Imported for the classes that they register."""


class NoScope:
    """A scope without any class."""

    def table(self, class_name: ClassName) -> tuple[ClassTable, Query] | None:
        return None

    def redirected(self, class_name: ClassName, key: FieldName) -> ClassName:
        return class_name


def compile_query(
    query: Query,
    table: ClassTable,
    alias: str = "t",
    scope: Scope | None = None,
    led: frozenset[FieldName] = NO_FIELDS,
) -> Sql:
    """Return the condition that is true for exactly the rows that the query finds.

    The condition may be NULL, so don't negate it: use ``NoneOf``. ``led``: fields whose equality
    leads into a learned index.
    """
    indexes = [index.fields for index in table.schema.indexes.values() if len(index.fields) > 1]
    served = led_by_constants(indexes, query) if indexes else NO_FIELDS
    return Compilation(table, alias, scope or NoScope(), count(1), led, served).required(query)


def check_complete(nodes: Iterable[type[Query]]) -> None:
    """Raise ``TypeError`` if a class of nodes has no SQL."""
    missing = [node.__name__ for node in nodes if node not in READINGS]
    if missing:
        raise TypeError(f"objects.sql.operators has no SQL of {', '.join(missing)}")


check_complete(NODES)

__all__ = ["Scope", "Sql", "check_complete", "compile_query", "order_by", "score_expression"]
