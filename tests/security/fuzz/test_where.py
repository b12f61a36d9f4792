"""``where``: parsed, matched in memory and compiled to SQL, or refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest

from backend.kernel.errors import InvalidQuery
from objects.core.query.parser import parse_where
from objects.core.query.predicate import predicate
from objects.core.query.tree import Everything, Query
from objects.sql.compiler import compile_query
from objects.sql.tables import ClassTable
from tests.objects.sql.world import GENERIC, OTHER, PROMOTED
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    check_work_is_proportional,
    fuzz,
)

POINTER = {"__type": "Pointer", "className": "Other", "objectId": "aaaaaaaaaa"}
DATE = {"__type": "Date", "iso": "2020-01-31T12:00:00.000Z"}
POINT = {"__type": "GeoPoint", "latitude": 1.5, "longitude": -3}
CORPUS: list[dict[str, Any]] = [
    {},
    {"name": "a", "score": 1, "flag": True, "objectId": "aaaaaaaaaa"},
    {"score": {"$gt": 1, "$lte": 5, "$ne": 3, "$exists": True}},
    {"name": {"$in": ["a", None, 1], "$nin": ["b"]}},
    {"tags": {"$all": ["a", "b"]}, "info.a.b": {"$exists": False}},
    {"tags": {"$all": [{"$regex": "^a"}, {"$regex": "^b"}]}},
    {"tags": {"$containedBy": [1, 2, "a"]}, "info": {"a": {"b": [1]}}},
    {"name": {"$regex": "^a.*b$", "$options": "i"}},
    {"name": {"$text": {"$search": {"$term": "a b", "$caseSensitive": False}}}},
    {"$or": [{"name": "a"}, {"$and": [{"score": 1}, {"$nor": [{"flag": False}]}]}]},
    {"owner": {"$inQuery": {"className": "Other", "where": {"score": 1}, "limit": 5}}},
    {"owner": {"$notInQuery": {"className": "Other", "where": {"tags": "a"}, "order": "-name"}}},
    {"name": {"$select": {"query": {"className": "Other", "where": {}}, "key": "name"}}},
    {"name": {"$dontSelect": {"query": {"className": "Other"}, "key": "tags"}}},
    {"$relatedTo": {"object": {**POINTER, "className": "Thing"}, "key": "likes"}},
    {"owner": POINTER, "when": {"$gte": DATE}, "likes": POINTER},
    {"when": {"$lt": {"$relativeTime": "3 days ago"}}},
    {"place": {"$nearSphere": POINT, "$maxDistanceInKilometers": 10}},
    {"place": {"$geoWithin": {"$centerSphere": [[1, 2], 0.5]}}},
    {"place": {"$within": {"$box": [POINT, {**POINT, "latitude": 9}]}}},
    {"place": {"$geoWithin": {"$polygon": [[0, 0], [0, 1], [1, 1], [1, 0]]}}},
    {"area": {"$geoIntersects": {"$point": POINT}}},
    {"blob": {"__type": "Bytes", "base64": "YQ=="}},
    {"file": {"__type": "File", "name": "a.txt", "url": "http://localhost/a.txt"}},
]
OBJECT: dict[str, Any] = {
    "objectId": "aaaaaaaaaa",
    "createdAt": "2020-01-31T12:00:00.000Z",
    "updatedAt": "2020-01-31T12:00:00.000Z",
    "name": "a word",
    "score": 3,
    "flag": True,
    "when": DATE,
    "owner": POINTER,
    "place": POINT,
    "tags": ["a", 1, None, {"a": 1}],
    "info": {"a": {"b": [1, {"c": 2}]}},
}


class _Scope:
    def table(self, class_name: str) -> tuple[ClassTable, Query] | None:
        tables = {"Thing": GENERIC, "Other": OTHER}
        return (tables[class_name], Everything()) if class_name in tables else None


def use(where: Any) -> None:
    """Parse, compile for two tables, and match an object."""
    query = parse_where(where)
    for table in (GENERIC, PROMOTED):
        statement = compile_query(query, table, "t", _Scope())
        assert statement.text.count("%s") == len(statement.params)
    with suppress(InvalidQuery):  # what only PostgreSQL answers
        assert predicate(query, None, "Thing")(OBJECT) in (True, False)


def make(mutator: Mutator) -> Any:
    return mutator.json(mutator.sample())


def test_the_examples_are_valid():
    accepts(use, CORPUS)


@EXAMPLES
def test_any_where_is_used_or_refused(examples):
    fuzz(use, make, CORPUS, examples)


def test_any_text_as_where_is_decoded_and_used_or_refused():
    texts = [msgspec.json.encode(where).decode() for where in CORPUS]

    def decoded(text: str) -> None:
        from objects.core.query.options import FindLimits, parse_find_options

        parse_find_options({"where": text}, FindLimits())

    accepts(decoded, texts)
    fuzz(decoded, lambda mutator: mutator.text(mutator.sample()), texts, 2_000)


@pytest.mark.parametrize(
    "grown",
    [
        lambda size: {f"a{number}": number for number in range(size)},
        lambda size: {"name": {"$in": [f"a{number}" for number in range(size)]}},
        lambda size: {"tags": {"$all": list(range(size))}},
        lambda size: {"tags": {"$containedBy": [{"a": number} for number in range(size)]}},
        lambda size: {"$or": [{"name": f"{number}"} for number in range(size)]},
        lambda size: {"$or": [{"name": {"$regex": f"a{number}"}} for number in range(size)]},
        lambda size: {"info": {f"a{number}": [number] for number in range(size)}},
        lambda size: {"place": {"$geoWithin": {"$polygon": [[n % 80, n] for n in range(size)]}}},
    ],
    ids=["fields", "in", "all", "containedBy", "or", "regexes", "object", "polygon"],
)
def test_work_is_proportional_to_size(grown):
    check_work_is_proportional(use, grown, (30, 120, 480))


def test_nothing_long_is_remembered():
    for where in (
        lambda text: {"name": text},
        lambda text: {text: 1},
        lambda text: {f"info.{text}": 1},
        lambda text: {"name": {"$regex": text}},
        lambda text: {"name": {"$in": [text]}},
        lambda text: {"owner": {"$inQuery": {"className": text, "where": {}}}},
    ):
        check_nothing_long_is_remembered(use, where)
