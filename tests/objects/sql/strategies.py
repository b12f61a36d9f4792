"""Random objects, and random questions that have a fair chance of finding them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from backend.kernel.json_types import Json
from objects.core.query import tree
from objects.core.query.paths import candidates
from objects.core.values import kind, normalise
from tests.objects.sql.world import Objects, friends, pointers_to_others

TEXTS = [
    "", "a", "A", "ab", "aB", "abc", "b", "é", "É", "ß", "K", "k", "x y", "a\nb", "\n", "1", "10",
    "\U0001f600", "\uffff", "\ue000", "'\"\\", "%s", "$1", "null", "a.b",
    "2024-01-01T00:00:00.000Z",
    # Learned indexes hold 128 characters of a text.
    "a" * 127, "a" * 128, "a" * 129, "a" * 128 + "b", "a" * 127 + "b", "a" * 127 + "\U0001f600",
]  # fmt: skip
DATES = [
    "0001-01-01T00:00:00.000Z",
    "1969-12-31T23:59:59.999Z",
    "2024-01-01T00:00:00.000Z",
    "2024-01-01T00:00:00.001Z",
    "9999-12-31T23:59:59.999Z",
]
NUMBERS = [
    0, 1, -1, 2, 3, 10, 255, 2**53, 2**53 + 1, 2**63, -(2**63), 2**63 - 1, 2**70, 10**30,
    0.1, 0.5, -0.5, 1.5, 1e-7, 123456.789, 0.30000000000000004, 5e-324,
]  # fmt: skip
IDS = ["o1", "o2", "o3", "o4"]
KEYS = ["a", "b", "0", "1", "x y", '"', "__type2", "é", "iso", "className"]

texts = st.sampled_from(TEXTS) | st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), max_size=3
)
numbers = (
    st.sampled_from(NUMBERS)
    | st.integers(-5, 5)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda n: normalise(n, "n"))
)
dates = st.sampled_from(DATES).map(lambda iso: {"__type": "Date", "iso": iso})
pointers = st.builds(
    lambda name, one: {"__type": "Pointer", "className": name, "objectId": one},
    st.sampled_from(["Other", "Thing"]),
    st.sampled_from(IDS),
)
owners = st.sampled_from(pointers_to_others(*IDS))
degrees = st.integers(-4, 4) | st.sampled_from([-2.5, 0.25, 0.1, 1e-200, 5e-324, 1 + 2**-52])
latitudes = degrees | st.sampled_from([90, -90, 89.9, 45.123])
longitudes = degrees | st.sampled_from([180, -180, 179.5, -179.5])
geo_points = st.builds(
    lambda latitude, longitude: normalise(
        {"__type": "GeoPoint", "latitude": latitude, "longitude": longitude}, "place"
    ),
    latitudes,
    longitudes,
)
polygons = (
    st.lists(st.tuples(degrees, degrees).map(list), min_size=3, max_size=6)
    .filter(lambda ring: len({(round(y, 9), round(x, 9)) for y, x in ring}) > 2)
    .map(lambda ring: normalise({"__type": "Polygon", "coordinates": ring}, "p"))
)
blobs = st.sampled_from(["", "YQ==", "YWI="]).map(lambda b: {"__type": "Bytes", "base64": b})
files = st.builds(
    lambda name, url: {"__type": "File", "name": name} | ({"url": url} if url else {}),
    st.sampled_from(["f1", "f2"]),
    st.sampled_from([None, "http://h/f1", "http://i/f1"]),
)
scalars = st.one_of(
    st.none(), st.booleans(), numbers, texts, dates, pointers, geo_points, blobs, files
)
values = st.recursive(
    scalars | polygons,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)
infos = st.dictionaries(st.sampled_from(KEYS), values, max_size=3)
lists = st.lists(values | st.lists(scalars, max_size=2), max_size=3)

BY_FIELD: dict[str, st.SearchStrategy[Any]] = {
    "name": texts,
    "title": texts,
    "score": numbers,
    "count": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    "flag": st.booleans(),
    "when": dates,
    "owner": owners,
    "place": geo_points,
    "area": polygons,
    "blob": blobs,
    "file": files,
    "tags": lists,
    "info": infos,
}
PATHS = [
    *BY_FIELD, "tags", "tags", "tags", "tags", "likes", "friends",
    "objectId", "createdAt", "updatedAt", "unknown", "unknown.a",
    "info.a", "info.a", "info.b", "info.a.b", "info.a.b.a", "info.x y", 'info."', "info.0",
    "info.a.0", "info.a.0.b", "info.a.1", "info.é", "tags.a", "tags.a", "tags.b", "tags.a.b",
    "tags.0", "tags.1", "tags.0.a", "tags.00", "tags.99999999999", "owner.objectId", "when.iso",
    "createdAt.iso", "place.latitude", "file.name", "area.coordinates", "area.coordinates.0.1",
    "name.a", "likes.className", "tags.objectId", "tags.__type", "title.0", "score.a",
]  # fmt: skip

_access = st.dictionaries(
    st.sampled_from(["*", "u1", "u2", "role:admin"]),
    st.sampled_from([{"read": True}, {"write": True}, {"read": True, "write": True}]),
    max_size=2,
)


@st.composite
def things(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Objects of class Thing."""
    observed = []
    for number in range(draw(st.integers(1, 6))):
        obj: dict[str, Any] = {
            "objectId": f"o{number + 1}",
            "createdAt": draw(st.sampled_from(DATES)),
            "updatedAt": draw(st.sampled_from(DATES)),
            "likes": {"__type": "Relation", "className": "Other"},
            "friends": {"__type": "Relation", "className": "Thing"},
        }
        fields = st.lists(st.sampled_from(sorted(BY_FIELD)), unique=True, max_size=6)
        # Lists and objects are where the difficulties are.
        names = draw(fields | fields.map(lambda names: sorted({*names, "tags", "info"})))
        for name in names:
            obj[name] = draw(st.none() | BY_FIELD[name] | BY_FIELD[name])
        if draw(st.booleans()):
            obj["ACL"] = draw(_access)
        observed.append(obj)
    return observed


@st.composite
def other_objects(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Objects of class Other."""
    observed = []
    for number in range(draw(st.integers(0, 4))):
        obj: dict[str, Any] = {
            "objectId": f"o{number + 1}",
            "createdAt": DATES[2],
            "updatedAt": DATES[2],
        }
        for name, strategy in (("name", texts), ("score", numbers), ("tags", lists)):
            if draw(st.booleans()):
                obj[name] = draw(st.none() | strategy)
        observed.append(obj)
    return observed


@st.composite
def relations(draw: st.DrawFn) -> dict[tuple[str, str], list[Json]]:
    """Members of the relations ``likes`` and ``friends``."""
    members = st.lists(st.sampled_from(IDS), unique=True, min_size=1, max_size=3)
    related: dict[tuple[str, str], list[Json]] = {}
    for key, pointers in (("likes", pointers_to_others), ("friends", friends)):
        for owner_id in draw(st.lists(st.sampled_from(IDS), unique=True, max_size=3)):
            related[owner_id, key] = pointers(*draw(members))
    return related


# --- questions -----------------------------------------------------------------------------

PATTERNS = [
    "a", "^a", "^\\Qa\\E", "\\Q.\\E", "b$", "^$", "^a.*b$", "[^a]", "(a|b)+c?", "\\d", "\\w+$",
    "^\\s", "x.y", "É", "ß", "k", "^.$", "\\bb", "\\B", "a{2}", "[a-c]{1,2}", "\U0001f600", "",
    "^\\Q%s\\E$", "^\U0010ffff", "(?i)A", "'", "[\\n]", "^b", "a$", "K", "^[\u0370-\U0010ffff]",
]  # fmt: skip
OPTIONS = ["", "i", "m", "s", "x", "im", "imsx", "u"]

MIXED = st.one_of(scalars, values, *BY_FIELD.values())


def _parts(value: Any) -> Iterator[Any]:
    """The value, and what is in it."""
    yield value
    for part in value if isinstance(value, list) else ():
        yield from _parts(part)
    if isinstance(value, dict) and "__type" not in value:
        for part in value.values():
            yield from _parts(part)


def _operands(path: str, objects: Objects) -> st.SearchStrategy[Any]:
    """Values for a path: those of objects, those that it may have, and any other."""
    there = [
        part
        for obj in objects
        for value in candidates(obj, tuple(path.split(".")))
        for part in _parts(value)
        if kind(part) != "Relation"
    ]
    near = _possible(path)
    return st.sampled_from(there) | st.sampled_from(there) | near if there else near


def _possible(path: str) -> st.SearchStrategy[Any]:
    own = BY_FIELD.get(path)
    if path == "owner":
        own = owners | st.sampled_from(IDS)
    if path == "likes":
        own = owners
    if path == "friends":
        own = pointers
    if path in ("createdAt", "updatedAt"):
        own = dates | st.sampled_from(DATES)
    if path == "objectId":
        own = st.sampled_from(IDS)
    return MIXED if own is None else own | own | MIXED


def _bare(values: st.SearchStrategy[Any], path: str) -> st.SearchStrategy[Any]:
    """Without text where createdAt and updatedAt take dates only."""
    if path not in ("createdAt", "updatedAt"):
        return values
    return values.filter(lambda value: not isinstance(value, str) or value in DATES)


@st.composite
def _other_query(draw: st.DrawFn) -> dict[str, Any]:
    where = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "score": numbers | st.fixed_dictionaries({"$gt": numbers}),
                "name": texts | st.fixed_dictionaries({"$exists": st.booleans()}),
                "tags": scalars,
            },
        )
    )
    paging = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "limit": st.integers(0, 2),
                "skip": st.integers(0, 2),
                "order": st.sampled_from(["score", "-score", "name", "-name,score"]),
            },
        )
    )
    return {"className": "Other", "where": where, **paging}


@dataclass(frozen=True)
class _Operands:
    """What strategies of operators draw from, for one path."""

    value: st.SearchStrategy[Any]
    comparable: st.SearchStrategy[Any]

    @property
    def many(self) -> st.SearchStrategy[Any]:
        return st.lists(self.value, max_size=4)


_patterns = st.sampled_from(PATTERNS)


def _geo_within(operands: _Operands) -> st.SearchStrategy[Any]:
    corners = st.lists(geo_points, min_size=3, max_size=6)
    radii = st.sampled_from([0, 0.01, 0.04, 1.5, 4])
    return st.one_of(
        st.fixed_dictionaries({"$polygon": corners | polygons}),
        st.fixed_dictionaries({"$centerSphere": st.tuples(geo_points, radii).map(list)}),
    )


def _select(operands: _Operands) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["name", "score", "tags", "tags.a", "tags.0", "objectId"])
    return st.fixed_dictionaries({"query": _other_query(), "key": keys})


OPERANDS: dict[str, Callable[[_Operands], st.SearchStrategy[Any]]] = {
    "$eq": lambda operands: operands.value,
    "$ne": lambda operands: operands.value,
    **dict.fromkeys(tree.Compare.names, lambda operands: operands.comparable),
    "$in": lambda operands: operands.many,
    "$nin": lambda operands: operands.many,
    "$containedBy": lambda operands: operands.many,
    "$exists": lambda operands: st.booleans(),
    "$all": lambda operands: (
        operands.many
        | operands.many
        | st.lists(st.fixed_dictionaries({"$regex": _patterns}), min_size=1, max_size=2)
    ),
    "$regex": lambda operands: _patterns,
    "$nearSphere": lambda operands: geo_points,
    "$within": lambda operands: st.fixed_dictionaries(
        {"$box": st.tuples(geo_points, geo_points).map(list)}
    ),
    "$geoWithin": _geo_within,
    "$geoIntersects": lambda operands: st.fixed_dictionaries({"$point": geo_points}),
    **dict.fromkeys(tree.InQuery.names, lambda operands: _other_query()),
    **dict.fromkeys(tree.Select.names, _select),
}
"""The operands of each operator after a field. ``$text`` has tests of its own."""

COMPANIONS: dict[str, st.SearchStrategy[Any]] = {
    "$regex": st.fixed_dictionaries({"$options": st.sampled_from(OPTIONS)}),
    "$nearSphere": st.just({})
    | st.fixed_dictionaries({"$maxDistance": st.sampled_from([0, 0.01, 0.05, 1, 3.2])}),
}
"""The options beside operators."""

_CONSTRAINTS = ["", "", "mixed", "$geoWithin", *OPERANDS]


@st.composite
def constraints(draw: st.DrawFn, path: str, objects: Objects) -> Any:
    """What may stand after a key."""
    value = _bare(_operands(path, objects), path)
    comparable = value.filter(
        lambda item: (
            isinstance(item, bool | int | float | str)
            or (isinstance(item, dict) and item.get("__type") == "Date")
        )
    )
    operator = draw(st.sampled_from(_CONSTRAINTS))
    if operator == "":
        return draw(value)
    if operator == "mixed":
        low, high = draw(comparable), draw(comparable)
        return {"$gte": low, "$lte": high, "$ne": draw(value)}
    constraint = {operator: draw(OPERANDS[operator](_Operands(value, comparable)))}
    return constraint | draw(COMPANIONS.get(operator, st.just({})))


@st.composite
def wheres(draw: st.DrawFn, objects: Objects = (), depth: int = 2) -> dict[str, Any]:
    """A whole ``where``, with some of the values that the objects have."""
    where: dict[str, Any] = {}
    for path in draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=2)):
        where[path] = draw(constraints(path, objects))
    if depth:
        logic = draw(st.sampled_from(["", "", "", "$or", "$and", "$nor", "$relatedTo"]))
        if logic == "$relatedTo":
            owner = {
                "__type": "Pointer",
                "className": "Thing",
                "objectId": draw(st.sampled_from(IDS)),
            }
            key = draw(st.sampled_from(["friends", "friends", "likes", "unknown"]))
            where = {"$relatedTo": {"object": owner, "key": key}}
        elif logic:
            parts = draw(st.lists(wheres(objects, depth=depth - 1), min_size=1, max_size=2))
            where = draw(st.sampled_from([{}, where])) | {logic: parts}
    return where


orders = st.lists(
    st.builds(
        lambda sign, path: sign + path,
        st.sampled_from(["", "-"]),
        st.sampled_from([path for path in PATHS if path != "likes.className"]),
    ),
    max_size=3,
).map(",".join)
