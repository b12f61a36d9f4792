"""From the constraint tree to SQL: the same meaning as ``objects.core.query.predicate``, by
PostgreSQL.

``compile_query`` gives a condition on the rows of a class's table. Of what a client wrote nothing
is ever in the text: values, keys and patterns are parameters. The text depends on the shape of a
query only, so a prepared statement serves every query of that shape.

How indexes are met: equality by containment (``data @> …`` or a jsonpath, both for a GIN index
``jsonb_path_ops`` on ``data``); ranges, prefixes and orders by ``field_expression``, and so
equality on the leading fields of a declared index. Promoted columns are compared as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects.core.indexes.shapes import led_by_constants
from objects.core.names import ClassName, FieldName
from objects.core.query import tree
from objects.core.query.tree import Path, Query, all_of
from objects.core.values import kind
from objects.sql import geo, jsonpath
from objects.sql import regex as regex_sql
from objects.sql import text as text_sql
from objects.sql.fields import SINGLE_KINDS, Reading, read
from objects.sql.fragments import FALSE, TRUE, Sql, both, either, json_text, negation
from objects.sql.order import order_by, score_expression
from objects.sql.tables import ClassTable
from objects.sql.values import (
    any_element,
    comparison,
    each_candidate,
    each_element,
    fits,
    has_element,
    is_missing_or_null,
    is_subset,
    led_equality,
    or_null,
    selected_values,
    single_value,
    whole_value,
)

RELATIONS: Final = "objects_relation"
"""Members of relations: class_id, key, owning_id, related_id."""
_NO_FIELDS: Final[frozenset[FieldName]] = frozenset()


class Scope(Protocol):
    """The other classes that a query may look into, as the caller may see them."""

    def table(self, class_name: ClassName) -> tuple[ClassTable, Query] | None:
        """A class's table, and what its rows must fulfil besides; None if there is none."""


class NoScope:
    """A scope without any class."""

    def table(self, class_name: ClassName) -> tuple[ClassTable, Query] | None:
        return None


def compile_query(
    query: Query,
    table: ClassTable,
    alias: str = "t",
    scope: Scope | None = None,
    led: frozenset[FieldName] = _NO_FIELDS,
) -> Sql:
    """The condition that exactly the rows fulfil that the query finds; it is never NULL-safe to
    negate it: use ``NoneOf``. ``led``: fields whose equality leads into a learned index."""
    indexes = [index.fields for index in table.schema.indexes.values() if len(index.fields) > 1]
    served = led_by_constants(indexes, query) if indexes else _NO_FIELDS
    return _Compiler(table, alias, scope or NoScope(), count(1), led, served).required(query)


@dataclass(frozen=True, slots=True)
class _Compiler:
    table: ClassTable
    alias: str
    scope: Scope
    names: Iterator[int] = field(default_factory=count)
    led: frozenset[FieldName] = _NO_FIELDS
    served: frozenset[FieldName] = _NO_FIELDS
    """Fields behind the first of a declared index that the query leads to."""

    def required(self, node: Query) -> Sql:
        """As ``compile``, for what each row must fulfil. Only there PostgreSQL makes a join of the
        conditions of computed fields; in alternatives and negations their values are quicker."""
        if isinstance(node, tree.AllOf):
            return both(map(self.required, node.parts))
        if isinstance(node, tree.Equals | tree.In):
            if self.led and isinstance(node, tree.Equals) and self.is_led(node):
                equality = led_equality(self.read(node.path), node.value)
                if equality is not None:
                    return equality
            values = (node.value,) if isinstance(node, tree.Equals) else node.values
            condition = self.condition(node.path, values)
            if condition is not None:
                return condition
        return self.compile(node)

    def is_led(self, node: tree.Equals) -> bool:
        return len(node.path) == 1 and node.path[0] in self.led and node.value is not None

    def condition(self, path: Path, values: Sequence[Json]) -> Sql | None:
        """``Column.one_of`` of a computed field, where it has one for these values."""
        column = self.table.columns.get(path[0]) if len(path) == 1 and self.alias else None
        if column is None or column.one_of is None or None in values:
            return None
        self.check_values(path, values)
        condition = column.one_of(frozenset(one for one in values if isinstance(one, str)))
        return None if condition is None else Sql(condition.replace("{row}", self.alias))

    def check_values(self, path: Path, values: Sequence[Json]) -> None:
        """Raise ``InvalidQuery`` for a value that a computed field never has."""
        column = self.table.columns.get(path[0]) if len(path) == 1 else None
        if column is None or not column.values:
            return
        if any(value is not None and value not in column.values for value in values):
            *others, last = column.values
            raise InvalidQuery(f"where.{path[0]}: expected {', '.join(others)} or {last}")

    def compile(self, node: Query) -> Sql:
        return _METHODS[type(node)](self, node)

    def read(self, path: Path) -> Reading:
        reading = read(self.table, path, self.alias)
        if path[0] in self.served and reading.is_whole:
            return replace(reading, is_indexed=True)
        return reading

    # --- composition ---

    def all_of(self, node: tree.AllOf) -> Sql:
        return both(map(self.compile, node.parts))

    def any_of(self, node: tree.AnyOf) -> Sql:
        return either(map(self.compile, node.parts))

    def none_of(self, node: tree.NoneOf) -> Sql:
        return negation(either(map(self.compile, node.parts)))

    # --- equality ---

    def equals(self, node: tree.Equals) -> Sql:
        return self.any_value(node.path, (node.value,))

    def not_equals(self, node: tree.NotEquals) -> Sql:
        return negation(self.any_value(node.path, (node.value,)))

    def in_values(self, node: tree.In) -> Sql:
        return self.any_value(node.path, node.values)

    def not_in(self, node: tree.NotIn) -> Sql:
        return negation(self.any_value(node.path, node.values))

    def any_value(self, path: Path, values: Sequence[Json]) -> Sql:
        """Some element equals one of the values."""
        if not values:
            return FALSE
        self.check_values(path, values)
        reading = self.read(path)
        if reading.is_whole and reading.kind == "Relation":
            return self.any_member(path[0], values, reading)
        has_null = any(value is None for value in values)
        others: list[Json] = [value for value in values if value is not None]
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            others = [value for value in others if fits(value, reading)]
            missing = Sql(f"({or_null(reading)} IS NULL)") if has_null else FALSE
            return either([missing, single_value(reading, others)])
        parts = []
        if has_null:
            parts.append(is_missing_or_null(reading))
        if others:
            parts.append(any_element(reading, others))
        return either(parts)

    def any_member(self, key: str, values: Sequence[Json], reading: Reading) -> Sql:
        parts = []
        if any(value is None for value in values):
            parts.append(negation(self.members(key)))
        ids = [
            value["objectId"]
            for value in values
            if isinstance(value, dict)
            and value.get("__type") == "Pointer"
            and value["className"] == reading.target_class
        ]
        if ids:
            parts.append(self.members(key, Sql("r.related_id = ANY(%s::text[])", (ids,))))
        return either(parts)

    def members(self, key: str, condition: Sql = TRUE) -> Sql:
        """The row's relation has members, such as the condition (on ``r``) asks for."""
        joined = Sql(
            f"SELECT 1 FROM {RELATIONS} AS r WHERE r.class_id = %s AND r.key = %s"
            f" AND r.owning_id = {self.alias}.object_id",
            (self.table.class_id, key),
        )
        return "EXISTS (" + (joined if condition is TRUE else joined + " AND " + condition) + ")"

    # --- other constraints on one field ---

    def compare(self, node: tree.Compare) -> Sql:
        reading = self.read(node.path)
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            if kind(node.value) != reading.kind or reading.typed is None:
                return FALSE
            return comparison(reading, node.op, node.value)
        condition = jsonpath.compares(node.op, node.value)
        return has_element(reading, condition)

    def exists(self, node: tree.Exists) -> Sql:
        reading = self.read(node.path)
        if reading.is_whole and reading.kind == "Relation":
            found = self.members(node.path[0])
        elif reading.is_whole and reading.kind in SINGLE_KINDS:
            return Sql(f"({or_null(reading)} IS {'NOT ' if node.wanted else ''}NULL)")
        elif reading.is_whole or reading.is_exact:
            value = whole_value(reading)
            found = "(NULLIF(" + value + ", 'null'::jsonb) IS NOT NULL)"
        else:
            path = jsonpath.not_null(reading.steps)
            found = Sql(f"({reading.base} @? %s::jsonpath)", (path,))
        return found if node.wanted else negation(found)

    def contains_all(self, node: tree.ContainsAll) -> Sql:
        if not node.values:
            return FALSE
        reading = self.read(node.path)
        if (
            reading.is_whole
            and reading.kind == "Array"
            and reading.column is None
            and all(value is not None and jsonpath.is_simple(value) for value in node.values)
        ):
            contained = json_text({node.path[0]: list(node.values)})
            return Sql(f"({reading.base} @> %s::jsonb)", (contained,))
        return both(self.any_value(node.path, (value,)) for value in node.values)

    def contains_all_regex(self, node: tree.ContainsAllRegex) -> Sql:
        parts = [self.regex(tree.Matches(node.path, pattern)) for pattern in node.patterns]
        return both(parts) if parts else FALSE

    def contained_by(self, node: tree.ContainedBy) -> Sql:
        reading = self.read(node.path)
        if reading.is_whole and reading.kind == "Relation":
            ids = [
                value["objectId"]
                for value in node.values
                if isinstance(value, dict) and fits(value, reading)
            ]
            other = Sql("NOT (r.related_id = ANY(%s::text[]))", (ids,))
            return both([self.members(node.path[0]), negation(self.members(node.path[0], other))])
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            return FALSE
        return each_candidate(reading, partial(is_subset, values=node.values))

    def regex(self, node: tree.Matches) -> Sql:
        reading = self.read(node.path)
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            if reading.kind != "String" or reading.typed is None:
                return FALSE
            short = reading.short if reading.sorts_by_short else None
            return regex_sql.found_in(reading.typed, node.pattern, node.options, short)
        return each_element(
            reading,
            jsonpath.IS_STRING,
            lambda c: regex_sql.found_in(
                f"(({c} #>> '{{}}') COLLATE \"C\")", node.pattern, node.options
            ),
        )

    def text(self, node: tree.Text) -> Sql:
        return text_sql.condition(node, text_sql.documents(node, self.table, self.alias))

    # --- places ---

    def place(self, node: Query) -> Sql:
        test, type_name = geo.PLACE_TESTS[type(node)]
        reading = self.read(node.path)  # type: ignore[attr-defined]
        if reading.is_whole and reading.kind in SINGLE_KINDS | {"Polygon"}:
            if reading.kind != type_name:
                return FALSE
            return test(node, geo.Place.of_field(reading))
        return each_element(
            reading,
            jsonpath.has_type(type_name),
            lambda c: test(node, geo.Place.of_value(c)),
        )

    # --- other classes ---

    def in_query(self, node: tree.InQuery) -> Sql:
        found = self._in_query(node)
        return negation(found) if node.negated else found

    def _in_query(self, node: tree.InQuery) -> Sql:
        reading = self.read(node.path)
        class_name = node.query.class_name
        if (
            reading.is_whole
            and reading.kind in SINGLE_KINDS | {"Relation"}
            and (reading.kind not in ("Pointer", "Relation") or reading.target_class != class_name)
        ):
            return FALSE
        ids = self.subquery(node.query, lambda _table, alias: Sql(f"{alias}.object_id"))
        if ids is None:
            return FALSE
        if reading.is_whole and reading.kind == "Relation":
            return self.members(node.path[0], "r.related_id IN " + ids)
        if reading.is_whole and reading.kind == "Pointer":
            return f"({reading.typed} IN " + ids + ")"
        pointers = f"{jsonpath.has_type('Pointer')} && {jsonpath.class_is(class_name)}"
        return each_element(reading, pointers, lambda c: f"(({c}->>'objectId') IN " + ids + ")")

    def select(self, node: tree.Select) -> Sql:
        found = self._select(node)
        return negation(found) if node.negated else found

    def _select(self, node: tree.Select) -> Sql:
        reading = self.read(node.path)
        values = self.subquery(node.query, partial(selected_values, node.key))
        if values is None:
            return FALSE
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            return f"(NULLIF({reading.json}, 'null'::jsonb) IN " + values + ")"
        if reading.is_whole and reading.kind == "Relation":
            pointer = Sql(
                "jsonb_build_object('__type', 'Pointer', 'className', %s::text,"
                " 'objectId', r.related_id)",
                (reading.target_class,),
            )
            return self.members(node.path[0], "(" + pointer + " IN " + values + ")")
        # Null is no value, so it equals none, also if the sub-query has one.
        return either(
            each_candidate(
                reading, lambda c: f"(NULLIF({c}, 'null'::jsonb) IN " + values + ")", depth
            )
            for depth in (0, 1)
        )

    def subquery(
        self, query: tree.SubQuery, column: Callable[[ClassTable, str], Sql]
    ) -> Sql | None:
        """A parenthesised SELECT of one column; None if the class isn't there."""
        target = self.scope.table(query.class_name)
        if target is None:
            return None
        table, rights = target
        alias = f"s{next(self.names)}"
        where = all_of(query.where, rights)
        condition = _Compiler(table, alias, self.scope, self.names).compile(where)
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

    def related_to(self, node: tree.RelatedTo) -> Sql:
        owner = self.scope.table(node.class_name)
        if owner is None:
            return FALSE
        table, rights = owner
        relation = table.schema.fields.get(node.key)
        if relation is None or relation.target_class != self.table.class_name:
            return FALSE  # ids are unique within a class only
        alias = f"s{next(self.names)}"
        visible = _Compiler(table, alias, self.scope, self.names).compile(rights)
        return (
            Sql(
                f"({self.alias}.object_id IN (SELECT r.related_id FROM {RELATIONS} AS r"
                f" JOIN {table.relation} AS {alias} ON {alias}.object_id = r.owning_id"
                " WHERE r.class_id = %s AND r.key = %s AND r.owning_id = %s AND ",
                (table.class_id, node.key, node.object_id),
            )
            + visible
            + "))"
        )

    # --- for policies ---

    def one_of_ids(self, node: tree.OneOfIds) -> Sql:
        return Sql(f"({self.alias}.object_id = ANY(%s::text[]))", (sorted(node.ids),))

    def readable_by(self, node: tree.ReadableBy) -> Sql:
        return self.listed("read_acl", node.ids)

    def writable_by(self, node: tree.WritableBy) -> Sql:
        return self.listed("write_acl", node.ids)

    def listed(self, column: str, ids: frozenset[str]) -> Sql:
        name = f"{self.alias}.{column}"
        return Sql(f"({name} IS NULL OR {name} && %s::text[])", (sorted(ids),))


_METHODS: Final[Mapping[type[Query], Callable[[_Compiler, Any], Sql]]] = {
    tree.Everything: lambda _self, _node: TRUE,
    tree.Nothing: lambda _self, _node: FALSE,
    tree.AllOf: _Compiler.all_of,
    tree.AnyOf: _Compiler.any_of,
    tree.NoneOf: _Compiler.none_of,
    tree.Equals: _Compiler.equals,
    tree.NotEquals: _Compiler.not_equals,
    tree.Compare: _Compiler.compare,
    tree.In: _Compiler.in_values,
    tree.NotIn: _Compiler.not_in,
    tree.Exists: _Compiler.exists,
    tree.ContainsAll: _Compiler.contains_all,
    tree.ContainsAllRegex: _Compiler.contains_all_regex,
    tree.ContainedBy: _Compiler.contained_by,
    tree.Matches: _Compiler.regex,
    tree.Text: _Compiler.text,
    tree.Near: _Compiler.place,
    tree.WithinBox: _Compiler.place,
    tree.WithinPolygon: _Compiler.place,
    tree.WithinSphere: _Compiler.place,
    tree.IntersectsPoint: _Compiler.place,
    tree.InQuery: _Compiler.in_query,
    tree.Select: _Compiler.select,
    tree.RelatedTo: _Compiler.related_to,
    tree.OneOfIds: _Compiler.one_of_ids,
    tree.ReadableBy: _Compiler.readable_by,
    tree.WritableBy: _Compiler.writable_by,
}

__all__ = ["Scope", "Sql", "compile_query", "order_by", "score_expression"]
