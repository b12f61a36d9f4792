"""The base of all nodes of the constraint tree, and what a node's methods are given.

A query operator is one class in ``objects.core.query.operators``, a dataclass derived from
``Query``: its names and operand on the wire, its predicate, and what indexes, LiveQuery, the admin
and the documentation need of it. Its SQL is one class in ``objects.sql.operators``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Protocol, TypeAlias

from backend.kernel.json_types import Json
from objects.core.names import ClassName, FieldName
from objects.core.query.filters import Filter
from objects.core.query.limits import QuerySize
from objects.core.query.paths import (
    Object,
    Path,
    candidates,
    comparables,
    elements,
    is_relation,
)

Predicate: TypeAlias = Callable[[Object], bool]

Use: TypeAlias = Literal["equality", "range", "prefix", "place", "text", "alternative", "filter"]
"""How a condition uses a field. ``alternative``: a range that is one of several conditions;
``filter``: in a way that no index serves."""
Uses: TypeAlias = tuple[tuple[FieldName, Use], ...]

SCORE: Final[Path] = (FieldName("$score"),)
"""Stands for a path in sort keys; no field has this name."""


@dataclass(frozen=True, slots=True)
class Query:
    """Any constraint. Use the subclasses.

    The class variables describe an operator on the wire; nodes that clients can't write leave
    them empty.
    """

    names: ClassVar[tuple[str, ...]] = ()
    """Names of the operator after a field: ``{"score": {"$gt": 5}}``."""
    clauses: ClassVar[tuple[str, ...]] = ()
    """Names of the operator in place of a field's name: ``{"$or": […]}``."""
    companions: ClassVar[tuple[str, ...]] = ()
    """Names of options that stand beside the operator, and only there."""
    usage: ClassVar[str] = ""
    """How the operator is written, in Markdown; for the table in docs/rest.md."""
    summary: ClassVar[str] = ""
    """What the operator means, in Markdown; for the table in docs/rest.md."""
    filters: ClassVar[tuple[Filter, ...]] = ()
    """What the admin's filter form offers."""

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        """Return the node of an operator after a field. Raises ``ServiceError`` with the place."""
        raise NotImplementedError

    @classmethod
    def parse_clause(cls, clause: Clause, parser: Parser) -> Query:
        """Return the node of an operator in place of a field's name. Raises ``ServiceError``."""
        raise NotImplementedError

    @classmethod
    def nodes(cls) -> tuple[type[Query], ...]:
        """Return the classes of the nodes that parsing returns."""
        return (cls,)

    def predicate(self, matching: Matching) -> Predicate:
        """Return the node as a function of an object."""
        raise NotImplementedError

    def children(self) -> tuple[Query, ...]:
        """Return the nodes directly below, of the same class of objects."""
        return ()

    def fields(self) -> tuple[FieldName | Literal["*"], ...]:
        """Return the top-level fields that the node itself reads; ``*`` means all String fields."""
        path: Path | None = getattr(self, "path", None)
        return path[:1] if path else ()

    def uses(self) -> Uses:
        """Return how the node uses fields, as a condition that each object must fulfil."""
        return ()

    def required_values(self) -> tuple[Path, Sequence[Json]] | None:
        """Return a path and values, one of which each matching object has there as an element.

        None if the node doesn't restrict a path to values.
        """
        return None

    def comparisons(self) -> int:
        """Return how many comparisons with an element the node itself makes."""
        return 1


def filtered(query: Query) -> Uses:
    """Return the uses of a node that no index serves: it filters by each field that it reads."""
    nodes = walk(query) if query.children() else (query,)
    names = {name for node in nodes for name in node.fields()}
    return tuple((name, "filter") for name in names if name != "*")


def walk(query: Query, *, into_subqueries: bool = False) -> Iterator[Query]:
    """Yield the node and all nodes below it; those of sub-queries only when asked for."""
    yield query
    for part in query.children():
        yield from walk(part, into_subqueries=into_subqueries)
    if into_subqueries:
        subquery = getattr(query, "query", None)
        if isinstance(subquery, SubQuery):
            yield from walk(subquery.where, into_subqueries=True)


# --- other classes -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One sort key. ``path`` is ``SCORE`` for the rank of a text search: best first."""

    path: Path
    descending: bool = False

    @property
    def is_score(self) -> bool:
        return self.path == SCORE


@dataclass(frozen=True, slots=True)
class SubQuery:
    """Objects of a class, under the caller's rights. Without ``limit``, all of them.

    With ``redirect_key``, they are of the class that this relation of ``class_name`` leads to. Only
    SQL can follow it.
    """

    class_name: ClassName
    where: Query
    limit: int | None = None
    skip: int = 0
    order: tuple[OrderKey, ...] = ()
    redirect_key: FieldName | None = None


# --- for parsing ---------------------------------------------------------------------------


@dataclass(slots=True)
class Operand:
    """What a client wrote after an operator of a field.

    ``place`` is the path of the operand in the request (``where.score.$gt``), ``field_place`` that
    of the field (``where.score``). ``siblings`` are all operators of the field with their operands.
    """

    path: Path
    name: str
    value: object
    siblings: Mapping[str, object]
    field_place: str
    place: str
    depth: int


@dataclass(slots=True)
class Clause:
    """What a client wrote after an operator in place of a field's name.

    ``place`` is the path of the ``where`` that the clause is in.
    """

    name: str
    value: object
    place: str
    depth: int


class Parser(Protocol):
    """What operators use of the parser of a ``where``. All methods raise ``ServiceError``."""

    @property
    def size(self) -> QuerySize:
        """Counts the parts of the whole ``where``."""

    def where(self, where: object, place: str, depth: int) -> Query:
        """Return the tree of a nested ``where``."""

    def value(self, path: Path, value: object, place: str) -> Json:
        """Return the canonical form of a value that is compared with a field."""

    def values(self, path: Path, operand: object, place: str, message: str) -> tuple[Json, ...]:
        """Return the canonical values of a list; ``message`` is the error for what isn't a list."""

    def relative_date(self, text: object, place: str) -> Json:
        """Return the Date that the text of a ``$relativeTime`` means now."""

    def path(self, key: str) -> Path:
        """Return the steps of a dotted key."""

    def order(self, order: str, place: str) -> tuple[OrderKey, ...]:
        """Return the sort keys of a sub-query."""


# --- for matching --------------------------------------------------------------------------


class Lookup(Protocol):
    """What a query may need in addition to the object, as the caller may see it."""

    def find(self, query: SubQuery) -> Sequence[Object]:
        """Return the objects that a sub-query finds."""

    def members(self, class_name: str | None, object_id: str, key: str) -> Collection[Json]:
        """Return pointers to a relation's members; none if the caller can't read the owner.

        ``class_name`` None is the class of the objects that are matched.
        """


@dataclass(slots=True)  # not frozen: freezing triples the cost of making one
class Matching:
    """What predicates are built with."""

    lookup: Lookup
    class_name: str | None

    def candidates(self, path: Path) -> Callable[[Object], list[Json]]:
        """Return the function that returns the candidates at a path."""
        lookup = self.lookup
        return lambda obj: candidates(obj, path, lookup.members)

    def is_missing(self, path: Path) -> Predicate:
        """Return the predicate that there are no candidates at a path.

        A relation isn't missing without members either, as with Parse Server.
        """
        values = self.candidates(path)
        return lambda obj: not values(obj) and not is_relation(obj, path)

    def some_equal(self, path: Path, test: Callable[[Json], bool]) -> Predicate:
        """Return the predicate that something equal to a value at a path passes the test."""
        members = self.lookup.members
        return lambda obj: any(map(test, comparables(obj, path, members)))

    def some_element(self, path: Path, test: Callable[[Json], bool]) -> Predicate:
        """Return the predicate that some element at a path passes the test."""
        members = self.lookup.members
        return lambda obj: any(map(test, elements(obj, path, members)))


def negation(holds: Predicate) -> Predicate:
    """Return the opposite predicate."""
    return lambda obj: not holds(obj)
