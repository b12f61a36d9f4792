"""What the constraint tree means: whether an object is found by a query, and in which order.

This is the definition that the SQL of ``objects.sql.compiler`` is tested against, and the predicate
that live queries run on every event. Plain Python: no I/O but what the ``Lookup`` does, and no
operand can make it fail or hang.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, TypeAlias

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects.core.query import geo, tree
from objects.core.query.paths import Object, candidates, elements, exact_value
from objects.core.query.text import configuration, found_in, read_term
from objects.core.query.tree import OrderKey, Path, Query, SubQuery
from objects.core.regex.patterns import compile_regex
from objects.core.values import equal, frozen, is_pointer, kind, number_key, pointer

Predicate: TypeAlias = Callable[[Object], bool]


class Lookup(Protocol):
    """What a query may need besides the object, as the caller may see it."""

    def find(self, query: SubQuery) -> Sequence[Object]:
        """The objects that a sub-query finds."""

    def members(self, class_name: str | None, object_id: str, key: str) -> Collection[Json]:
        """The pointers to the members of a relation; none if the caller can't read the owner.

        ``class_name`` None is the class of the objects that are matched.
        """


class NoLookup:
    """Nothing is to be found, and no relation has members."""

    def find(self, query: SubQuery) -> Sequence[Object]:
        return ()

    def members(self, class_name: str | None, object_id: str, key: str) -> Collection[Json]:
        return ()


def matches(
    query: Query, obj: Object, lookup: Lookup | None = None, class_name: str | None = None
) -> bool:
    """Whether the query finds the object. To ask it of many objects, keep a ``predicate``."""
    return predicate(query, lookup, class_name)(obj)


def predicate(
    query: Query, lookup: Lookup | None = None, class_name: str | None = None
) -> Predicate:
    """The query as a function of an object of a class. Sub-queries are looked up at every call.

    Without ``class_name`` no object is a member of a relation. Raises ``InvalidQuery`` for a text
    search with stemming, which only PostgreSQL can do.
    """
    return _Builder(lookup or NoLookup(), class_name).build(query)


class _Builder:
    def __init__(self, lookup: Lookup, class_name: str | None) -> None:
        self.lookup = lookup
        self.class_name = class_name

    def build(self, node: Query) -> Predicate:
        return _METHODS[type(node)](self, node)

    # --- composition ---

    def all_of(self, node: tree.AllOf) -> Predicate:
        parts = [self.build(part) for part in node.parts]
        return lambda obj: all(part(obj) for part in parts)

    def any_of(self, node: tree.AnyOf) -> Predicate:
        parts = [self.build(part) for part in node.parts]
        return lambda obj: any(part(obj) for part in parts)

    def none_of(self, node: tree.NoneOf) -> Predicate:
        parts = [self.build(part) for part in node.parts]
        return lambda obj: not any(part(obj) for part in parts)

    # --- a field and a value ---

    def candidates(self, path: Path) -> Callable[[Object], list[Json]]:
        lookup = self.lookup
        return lambda obj: candidates(obj, path, lookup.members)

    def some_element(self, path: Path, test: Callable[[Json], bool]) -> Predicate:
        members = self.lookup.members
        return lambda obj: any(map(test, elements(obj, path, members)))

    def equals(self, node: tree.Equals) -> Predicate:
        found = self.some_element(node.path, _equality(node.value))
        if node.value is not None:
            return found
        values = self.candidates(node.path)
        return lambda obj: not values(obj) or found(obj)

    def not_equals(self, node: tree.NotEquals) -> Predicate:
        return _negation(self.equals(tree.Equals(node.path, node.value)))

    def in_values(self, node: tree.In) -> Predicate:
        keys = _keys(node.values)
        found = self.some_element(node.path, lambda value: _key(value) in keys)
        if None not in node.values:
            return found
        values = self.candidates(node.path)
        return lambda obj: not values(obj) or found(obj)

    def not_in(self, node: tree.NotIn) -> Predicate:
        return _negation(self.in_values(tree.In(node.path, node.values)))

    def compare(self, node: tree.Compare) -> Predicate:
        return self.some_element(node.path, _comparison(node.op, node.value))

    def exists(self, node: tree.Exists) -> Predicate:
        values, wanted = self.candidates(node.path), node.wanted
        return lambda obj: any(value is not None for value in values(obj)) is wanted

    def contains_all(self, node: tree.ContainsAll) -> Predicate:
        keys, members = _keys(node.values), self.lookup.members
        # null is what is missing, too.
        of_nothing = _keys([None])

        def contains(obj: Object) -> bool:
            if not candidates(obj, node.path, members):
                return keys == of_nothing
            return keys <= _keys(elements(obj, node.path, members))

        return lambda obj: bool(keys) and contains(obj)

    def contains_all_regex(self, node: tree.ContainsAllRegex) -> Predicate:
        parts = [self.regex(tree.Matches(node.path, pattern)) for pattern in node.patterns]
        return lambda obj: bool(parts) and all(part(obj) for part in parts)

    def contained_by(self, node: tree.ContainedBy) -> Predicate:
        values = self.candidates(node.path)
        keys = _keys(node.values)

        def is_subset(value: Json) -> bool:
            return isinstance(value, list) and all(_key(item) in keys for item in value)

        return lambda obj: any(map(is_subset, values(obj)))

    def regex(self, node: tree.Matches) -> Predicate:
        found = compile_regex(node.pattern, node.options).found_in
        return self.some_element(node.path, lambda value: isinstance(value, str) and found(value))

    def text(self, node: tree.Text) -> Predicate:
        if configuration(node.language) != "simple":
            raise InvalidQuery(f"$text with $language {node.language} can't be matched here")
        search, path = read_term(node.term), node.path
        sensitive = {
            "case_sensitive": node.case_sensitive,
            "diacritic_sensitive": node.diacritic_sensitive,
        }

        def texts(obj: Object) -> Iterable[str]:
            values: Iterable[Json]
            if path is None:
                values = (obj[name] for name in sorted(obj) if name not in _NO_TEXT)
            else:
                values = elements(obj, path, self.lookup.members)
            return [value for value in values if isinstance(value, str)]

        return lambda obj: found_in(texts(obj), search, **sensitive)

    # --- places ---

    def near(self, node: tree.Near) -> Predicate:
        most = node.max_radians

        def is_near(value: Json) -> bool:
            point = geo.point_of(value)
            return point is not None and (most is None or geo.distance(point, node.point) <= most)

        return self.some_element(node.path, is_near)

    def within_sphere(self, node: tree.WithinSphere) -> Predicate:
        return self.near(tree.Near(node.path, node.center, node.radians))

    def within_box(self, node: tree.WithinBox) -> Predicate:
        def is_within(value: Json) -> bool:
            point = geo.point_of(value)
            return point is not None and geo.in_box(point, node.southwest, node.northeast)

        return self.some_element(node.path, is_within)

    def within_polygon(self, node: tree.WithinPolygon) -> Predicate:
        def is_within(value: Json) -> bool:
            point = geo.point_of(value)
            return point is not None and geo.in_polygon(point, node.points)

        return self.some_element(node.path, is_within)

    def intersects_point(self, node: tree.IntersectsPoint) -> Predicate:
        def holds(value: Json) -> bool:
            ring = geo.ring_of(value)
            return ring is not None and geo.in_polygon(node.point, ring)

        return self.some_element(node.path, holds)

    # --- other classes ---

    def in_query(self, node: tree.InQuery) -> Predicate:
        members, find, query = self.lookup.members, self.lookup.find, node.query

        def found(obj: Object) -> bool:
            ids = {
                value["objectId"]
                for value in elements(obj, node.path, members)
                if isinstance(value, dict)
                and is_pointer(value)
                and value["className"] == query.class_name
            }
            return bool(ids) and any(other["objectId"] in ids for other in find(query))

        return _negation(found) if node.negated else found

    def select(self, node: tree.Select) -> Predicate:
        members, find = self.lookup.members, self.lookup.find

        def found(obj: Object) -> bool:
            own = list(elements(obj, node.path, members))
            return any(
                value is not None and equal(value, one)
                for other in find(node.query)
                for value in candidates(other, node.key)
                for one in own
            )

        return _negation(found) if node.negated else found

    def related_to(self, node: tree.RelatedTo) -> Predicate:
        members, class_name = self.lookup.members, self.class_name

        def is_member(obj: Object) -> bool:
            # Ids are unique within a class only.
            return class_name is not None and any(
                equal(member, pointer(class_name, obj["objectId"]))
                for member in members(node.class_name, node.object_id, node.key)
            )

        return is_member

    # --- for policies ---

    def one_of_ids(self, node: tree.OneOfIds) -> Predicate:
        return lambda obj: obj["objectId"] in node.ids

    def readable_by(self, node: tree.ReadableBy) -> Predicate:
        return lambda obj: _is_listed(obj, node.ids, "read")

    def writable_by(self, node: tree.WritableBy) -> Predicate:
        return lambda obj: _is_listed(obj, node.ids, "write")


_METHODS: Final[Mapping[type[Query], Callable[[_Builder, Any], Predicate]]] = {
    tree.Everything: lambda _self, _node: lambda _obj: True,
    tree.Nothing: lambda _self, _node: lambda _obj: False,
    tree.AllOf: _Builder.all_of,
    tree.AnyOf: _Builder.any_of,
    tree.NoneOf: _Builder.none_of,
    tree.Equals: _Builder.equals,
    tree.NotEquals: _Builder.not_equals,
    tree.Compare: _Builder.compare,
    tree.In: _Builder.in_values,
    tree.NotIn: _Builder.not_in,
    tree.Exists: _Builder.exists,
    tree.ContainsAll: _Builder.contains_all,
    tree.ContainsAllRegex: _Builder.contains_all_regex,
    tree.ContainedBy: _Builder.contained_by,
    tree.Matches: _Builder.regex,
    tree.Text: _Builder.text,
    tree.Near: _Builder.near,
    tree.WithinBox: _Builder.within_box,
    tree.WithinPolygon: _Builder.within_polygon,
    tree.WithinSphere: _Builder.within_sphere,
    tree.IntersectsPoint: _Builder.intersects_point,
    tree.InQuery: _Builder.in_query,
    tree.Select: _Builder.select,
    tree.RelatedTo: _Builder.related_to,
    tree.OneOfIds: _Builder.one_of_ids,
    tree.ReadableBy: _Builder.readable_by,
    tree.WritableBy: _Builder.writable_by,
}

_NO_TEXT: Final = frozenset({"objectId", "createdAt", "updatedAt"})


def _negation(found: Predicate) -> Predicate:
    return lambda obj: not found(obj)


def _is_listed(obj: Object, ids: frozenset[str], right: str) -> bool:
    acl = obj.get("ACL")
    if not isinstance(acl, dict):
        return True
    rights = (acl.get(one) for one in ids)
    return any(isinstance(granted, dict) and granted.get(right) is True for granted in rights)


# --- values --------------------------------------------------------------------------------


def _equality(value: Json) -> Callable[[Json], bool]:
    if value is None or isinstance(value, bool):
        return lambda other: other is value
    if isinstance(value, str):
        return lambda other: other == value
    if isinstance(value, dict) and value.get("__type") == "File":
        # A file is known by its name: its url depends on the server that shows it.
        name = value["name"]
        return lambda other: (
            isinstance(other, dict) and other.get("__type") == "File" and other["name"] == name
        )
    return lambda other: equal(other, value)


def _key(value: Json) -> Hashable:
    """The same for values that ``_equality`` calls equal, and for no others: long lists are
    compared by it, since one value after the other would take the product of their lengths."""
    if isinstance(value, dict) and value.get("__type") == "File":
        return ("File", frozen(value.get("name")))
    key: Hashable = frozen(value)
    return key


def _keys(values: Iterable[Json]) -> frozenset[Hashable]:
    return frozenset(map(_key, values))


def _comparison(op: tree.Comparison, value: Json) -> Callable[[Json], bool]:
    bracket = kind(value)
    bound = _comparable(value)

    def holds(other: Json) -> bool:
        if kind(other) != bracket:
            return False
        own = _comparable(other)
        if op == "lt":
            return bool(own < bound)
        if op == "lte":
            return bool(own <= bound)
        return bool(own > bound) if op == "gt" else bool(own >= bound)

    return holds


def _comparable(value: Json) -> Any:
    if isinstance(value, dict):
        return value["iso"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_key(value)
    return value


# --- order ---------------------------------------------------------------------------------

_RANKS: Final = {
    "Number": 1,
    "String": 2,
    "Array": 4,
    "Boolean": 5,
    "Date": 6,
}
_STRUCTURE: Final = 3
_TEXT_KEYS: Final = {"Date": "iso", "Pointer": "objectId", "File": "name", "Bytes": "base64"}


def sort_value(value: Json) -> tuple[int, int | Decimal, str]:
    """What values of any kind are sorted by: MongoDB's order of kinds, then the value.

    Missing and null, numbers, strings, objects, lists, booleans, dates. Objects and lists are all
    alike, but for pointers (by objectId), files (by name) and bytes.
    """
    value_kind = kind(value)
    if value_kind is None or value_kind == "Relation":
        return (0, 0, "")
    rank = _RANKS.get(value_kind, _STRUCTURE)
    if isinstance(value, bool):
        return (rank, 0, "true" if value else "false")
    if isinstance(value, int | float):
        return (rank, number_key(value), "")
    if isinstance(value, str):
        return (rank, 0, value)
    if isinstance(value, dict) and value_kind in _TEXT_KEYS:
        return (rank, 0, str(value[_TEXT_KEYS[value_kind]]))
    return (rank, 0, "")


def sorted_objects(
    objects: Iterable[Object], order: Sequence[OrderKey], where: Query | None = None
) -> list[Object]:
    """The objects in the order in which a query sends them.

    Ascending is missing first, descending is missing last. A path of several steps is exact.
    Without keys, a top-level Near sorts by distance. objectId is the last key, in the direction
    of the key before it. ``$score`` sorts nothing here.
    """
    keys = [key for key in order if not key.is_score]
    result = list(objects)
    if not any(key.path == ("objectId",) for key in keys):
        descending = bool(order) and order[-1].descending
        result.sort(key=lambda obj: str(obj["objectId"]), reverse=descending)
    near = tree.near_of(where) if where else None
    if near is not None and not order:
        place, center = near.path, near.point

        def nearest(obj: Object) -> float:
            points = map(geo.point_of, elements(obj, place))
            return min(geo.distance(point, center) for point in points if point is not None)

        result.sort(key=nearest)
    for key in reversed(keys):
        path = key.path
        result.sort(
            key=lambda obj, path=path: sort_value(exact_value(obj, path)),  # type: ignore[misc]
            reverse=key.descending,
        )
    return result
