"""The constraint tree: what a ``where`` means, independent of how it is read.

A tree is made by ``query_parser.parse_where`` or by the policy, and is read by
``matching.predicate`` (its meaning), by ``objects.sql.compiler`` (SQL), and by ``fields_read``.
Nodes are immutable. Every value in them is canonical wire JSON, and every operand was checked
by whoever made the node: readers don't validate again.

Two nodes are compared by Python's ``==`` only in tests: ``Equals(p, True) == Equals(p, 1)``, so
a tree must never be used as the key of a cache.

Meaning of the words used below, for an object and a path:

* *candidates*: the values at the path. The first step reads the object; a further step reads a
  key of an object, and goes through a list to each element that is an object. When a step is a
  number the descent is exact instead: an index of a list or a key of an object, nothing implicit.
* *elements*: the candidates, and the elements of those that are lists (one level).
* A Relation field reads as the list of pointers to its members, one without members as missing.
* ``createdAt`` and ``updatedAt`` read as Dates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from backend.kernel.json_types import Json
from objects.core.names import ClassName, FieldName, FieldPath, ObjectId

Path: TypeAlias = FieldPath
Steps: TypeAlias = tuple[str, ...]
"""Keys inside a value."""
Point: TypeAlias = tuple[float, float]
"""(latitude, longitude) in degrees."""

Comparison: TypeAlias = Literal["lt", "lte", "gt", "gte"]

EARTH_RADIUS_KM = 6371.0
EARTH_RADIUS_MILES = 3959.0


@dataclass(frozen=True, slots=True)
class Query:
    """Any constraint. Use the subclasses."""


# --- composition ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Everything(Query):
    """Every object."""


@dataclass(frozen=True, slots=True)
class Nothing(Query):
    """No object."""


@dataclass(frozen=True, slots=True)
class AllOf(Query):
    """Objects that every part matches; all objects if there is no part."""

    parts: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Query):
    """Objects that some part matches; none if there is no part."""

    parts: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class NoneOf(Query):
    """Objects that no part matches."""

    parts: tuple[Query, ...]


# --- a field and a value -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Equals(Query):
    """Some element equals the value. ``None``: no candidates, or some element is null."""

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class NotEquals(Query):
    """Exactly the objects that ``Equals`` leaves out."""

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class Compare(Query):
    """Some element of the operand's kind (Number, String, Date, Boolean) compares so.

    Strings compare by code point, Dates by time, false is before true.
    """

    path: Path
    op: Comparison
    value: Json


@dataclass(frozen=True, slots=True)
class In(Query):
    """``Equals`` for any of the values; nothing if there are none."""

    path: Path
    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class NotIn(Query):
    """Exactly the objects that ``In`` leaves out."""

    path: Path
    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Exists(Query):
    """Some candidate is not null (``wanted``), or none is."""

    path: Path
    wanted: bool


@dataclass(frozen=True, slots=True)
class ContainsAll(Query):
    """``Equals`` for each of the values; nothing if there are none."""

    path: Path
    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ContainsAllRegex(Query):
    """For each of the patterns, some element is a string that it matches."""

    path: Path
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContainedBy(Query):
    """Some candidate is a list, and every element of it equals one of the values."""

    path: Path
    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Matches(Query):
    """Some element is a string in which the pattern (``objects.core.regex.patterns``) is found."""

    path: Path
    pattern: str
    options: str = ""


@dataclass(frozen=True, slots=True)
class Text(Query):
    """Full-text search (``objects.core.query.text``). ``path`` None: all String fields of the
    class."""

    path: Path | None
    term: str
    language: str = "none"
    case_sensitive: bool = False
    diacritic_sensitive: bool = False


# --- places --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Near(Query):
    """Some element is a GeoPoint, within ``max_radians`` of the point if that is given.

    As a top-level part it also sorts: the nearest come first, unless an order is asked for.
    """

    path: Path
    point: Point
    max_radians: float | None


@dataclass(frozen=True, slots=True)
class WithinBox(Query):
    """Some element is a GeoPoint in the box, borders included.

    A box whose south-west corner is east of the other one crosses the date line.
    """

    path: Path
    southwest: Point
    northeast: Point


@dataclass(frozen=True, slots=True)
class WithinPolygon(Query):
    """Some element is a GeoPoint in the polygon (closed, in plane degrees), border included."""

    path: Path
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class WithinSphere(Query):
    """Some element is a GeoPoint within ``radians`` of the centre; unlike Near, never sorts."""

    path: Path
    center: Point
    radians: float


@dataclass(frozen=True, slots=True)
class IntersectsPoint(Query):
    """Some element is a Polygon that has the point inside or on its border."""

    path: Path
    point: Point


# --- other classes -------------------------------------------------------------------------


SCORE: Final[Path] = (FieldName("$score"),)
"""Stands for a path in sort keys; no field has this name."""


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
    """Objects of a class, under the rights of whoever asks. Without ``limit``, all of them."""

    class_name: ClassName
    where: Query
    limit: int | None = None
    skip: int = 0
    order: tuple[OrderKey, ...] = ()


@dataclass(frozen=True, slots=True)
class InQuery(Query):
    """Some element is a pointer to an object that the sub-query finds (or not, ``negated``)."""

    path: Path
    query: SubQuery
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Select(Query):
    """Some element equals a value that some object of the sub-query has at ``key``.

    Null and missing are no values. ``negated`` gives exactly the other objects.
    """

    path: Path
    query: SubQuery
    key: Path
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RelatedTo(Query):
    """The members of the relation ``key`` of one object, if the caller may read that object."""

    class_name: ClassName
    object_id: ObjectId
    key: FieldName


# --- for policies --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OneOfIds(Query):
    """Objects with one of these ids."""

    ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReadableBy(Query):
    """Objects without an ACL, or whose ACL lets one of these ids (``*`` among them) read."""

    ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class WritableBy(Query):
    """Objects without an ACL, or whose ACL lets one of these ids (``*`` among them) write."""

    ids: frozenset[str]


# --- a whole question ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindOptions:
    """What to find and what to send of it. Made by ``find_options.parse_find_options``.

    ``keys`` None means all fields. ``include`` holds every prefix of what was asked for, so
    ``owner.company`` is there as ``("owner",)`` and ``("owner", "company")``.
    """

    where: Query
    limit: int
    skip: int = 0
    order: tuple[OrderKey, ...] = ()
    keys: frozenset[Path] | None = None
    exclude_keys: frozenset[Path] = frozenset()
    include: tuple[Path, ...] = ()
    include_all: bool = False
    count: bool = False
    redirect_key: FieldName | None = None
    explain: bool = False
    asked: Json = field(default=None, compare=False, repr=False)
    """The client's own ``where``, as it was sent; for those who tell others of it."""


# --- readings ------------------------------------------------------------------------------


def all_of(*parts: Query) -> Query:
    """The conjunction, flattened, without what is always true."""
    flat: list[Query] = []
    for part in parts:
        if isinstance(part, AllOf):
            flat.extend(part.parts)
        elif isinstance(part, Nothing):
            return part
        elif not isinstance(part, Everything):
            flat.append(part)
    if not flat:
        return Everything()
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def walk(query: Query, *, into_subqueries: bool = False) -> Iterator[Query]:
    """The node and all nodes below it; those of sub-queries only when asked for."""
    yield query
    if isinstance(query, AllOf | AnyOf | NoneOf):
        for part in query.parts:
            yield from walk(part, into_subqueries=into_subqueries)
    elif into_subqueries and isinstance(query, InQuery | Select):
        yield from walk(query.query.where, into_subqueries=True)


def fields_read(query: Query) -> frozenset[FieldName | Literal["*"]]:
    """The names of the top-level fields whose values decide whether an object is found.

    Sub-queries read fields of their own class: ask again with their ``where`` (and ``key``).
    ``RelatedTo`` reads a field of the owner, not of the class asked. A search without a path
    reads every String field, which is said by ``"*"``.
    """
    names: set[FieldName | Literal["*"]] = set()
    for node in walk(query):
        if isinstance(node, Text) and node.path is None:
            names.add("*")
        path = getattr(node, "path", None)
        if path:
            names.add(path[0])
    return frozenset(names)


def order_fields(order: tuple[OrderKey, ...]) -> frozenset[FieldName]:
    """The names of the top-level fields that sort keys read."""
    return frozenset(key.path[0] for key in order if not key.is_score)


def near_of(query: Query) -> Near | None:
    """The top-level Near part, which sorts the result."""
    parts = query.parts if isinstance(query, AllOf) else (query,)
    return next((part for part in parts if isinstance(part, Near)), None)


def text_of(query: Query) -> Text | None:
    """The top-level Text part, which gives ``$score``."""
    parts = query.parts if isinstance(query, AllOf) else (query,)
    return next((part for part in parts if isinstance(part, Text)), None)
