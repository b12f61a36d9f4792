"""Lists in lists and objects in objects: all small ones, asked all small questions.

Random values seldom meet where it matters whether a constraint looks one level deep or two.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from objects.core.query.parser import parse_where
from tests.objects.sql.world import THINGS, World, ids, thing

DATE = {"__type": "Date", "iso": "2024-01-01T00:00:00.000Z"}
FILE = {"__type": "File", "name": "f"}
PLAIN: list[Any] = [None, 1, "x", True, DATE, FILE]
FLAT: list[Any] = [
    [],
    {},
    *([value] for value in PLAIN),
    *([first, second] for first, second in combinations(PLAIN, 2)),
    *({key: value} for key, value in product(("a", "0"), PLAIN)),
]
DEEP: list[Any] = [*([value] for value in FLAT), *({"a": value} for value in FLAT)]
VALUES = PLAIN + FLAT + DEEP
OBJECTS = [
    thing("missing"),
    *(thing(f"info-{n}", info={"a": value}) for n, value in enumerate(VALUES)),
    *(thing(f"tags-{n}", tags=[value]) for n, value in enumerate(VALUES)),
    *(thing(f"list-{n}", tags=value) for n, value in enumerate(VALUES) if isinstance(value, list)),
]
PATHS = ["tags", "tags.a", "tags.0", "tags.0.a", "info.a", "info.a.a", "info.a.0", "unknown.a"]
SETS: list[list[Any]] = [[1], [None], [FILE], [[1], {"a": 1}], *map(list, combinations(PLAIN, 2))]
CONSTRAINTS: list[dict[str, Any]] = [
    *({"$eq": value} for value in PLAIN + FLAT),
    *({"$ne": value} for value in PLAIN),
    *({operator: values} for operator in ("$in", "$all", "$containedBy") for values in SETS),
    *({operator: value} for operator in ("$gte", "$lt") for value in (1, "x", True, "y", DATE)),
    {"$exists": True},
    {"$exists": False},
    {"$regex": "x"},
    {"$all": [{"$regex": "^x"}]},
    {"$geoWithin": {"$centerSphere": [[0, 0], 4]}},
    {"$select": {"query": {"className": "Other"}, "key": "tags"}},
    {"$select": {"query": {"className": "Other"}, "key": "tags.a"}},
]


@pytest.mark.parametrize("stored", ["in data", "promoted"])
@pytest.mark.parametrize("path", PATHS)
def test_every_constraint_finds_the_same_in_sql_and_in_memory(world: World, stored, path):
    decoys = [thing("o1", tags=[1, {"a": ["x"]}, {"a": None}]), thing("o2", tags=[None])]
    world.fill(OBJECTS, decoys)
    for constraint in CONSTRAINTS:
        query = parse_where({path: constraint})
        matches = world.in_sql(query, THINGS[stored])
        assert matches == ids(world.in_memory(query)), constraint
