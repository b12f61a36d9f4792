"""The plans that PostgreSQL makes: which index serves which constraint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from objects.core.query.parser import parse_order, parse_where
from objects.core.schema.definition import IndexDeclaration
from objects.sql.compiler import compile_query, order_by
from objects.sql.fields import column_expression, index_column, index_method
from objects.sql.full_text_search import document_expression
from objects.sql.tables import ClassTable
from tests.objects.sql.world import GENERIC, World

POINT = {"__type": "GeoPoint", "latitude": 10, "longitude": 20}
NEAR_DATE_LINE = {**POINT, "longitude": 179.9}
OWNER = {"__type": "Pointer", "className": "Other", "objectId": "o77"}
WHEN = {"__type": "Date", "iso": "2024-01-01T00:00:07.000Z"}


def declared(*names: str) -> ClassTable:
    """The class with a declared index on these fields."""
    index = IndexDeclaration("i", tuple((name, 1) for name in names))
    schema = type(GENERIC.schema)("Thing", GENERIC.schema.fields, indexes={"i": index})
    return ClassTable("Thing", 1, 1, '"thing"', schema)


@pytest.fixture(scope="module")
def rows(world: World) -> Iterator[psycopg.Connection[Any]]:
    """20,000 objects, with the index that every class has."""
    connection = world.connection
    connection.execute("TRUNCATE thing")
    connection.execute(
        """
        INSERT INTO thing SELECT 'o' || n, now(), now(), NULL, NULL, jsonb_build_object(
            'name', 'name ' || n, 'title', 'title ' || n % 1000, 'score', n, 'flag', n % 2 = 0,
            'when', jsonb_build_object('__type', 'Date', 'iso', to_char(
                '2024-01-01'::timestamp + n * '1 s'::interval, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
            'owner', jsonb_build_object(
                '__type', 'Pointer', 'className', 'Other', 'objectId', 'o' || n % 5000),
            'place', jsonb_build_object(
                '__type', 'GeoPoint', 'latitude', n % 80, 'longitude', n % 170 + n / 20000.0),
            'tags', jsonb_build_array(n, 'tag ' || n % 2000, jsonb_build_object('a', n)),
            'info', jsonb_build_object('a', jsonb_build_object('b', 'info ' || n)))
        FROM generate_series(1, 20000) AS n
        """
    )
    connection.execute("CREATE INDEX thing_data ON thing USING gin (data jsonb_path_ops)")
    connection.execute("ANALYZE thing")
    yield connection
    connection.execute("DROP INDEX thing_data")
    connection.execute("TRUNCATE thing")


def plan(
    connection: psycopg.Connection[Any],
    where: Any,
    table: ClassTable = GENERIC,
    order: str | None = None,
) -> str:
    condition = compile_query(parse_where(where), table)
    text, params = condition.text, condition.params
    if order is not None:
        sorting = order_by(parse_order(order), table)
        text, params = f"{text} {sorting.text} LIMIT 20", params + sorting.params
    lines = connection.execute(
        f"EXPLAIN SELECT * FROM {table.relation} AS t WHERE {text}",  # type: ignore[arg-type]
        params,
    ).fetchall()
    return "\n".join(line for (line,) in lines)


@pytest.mark.parametrize(
    "where",
    [
        {"name": "name 5"},
        {"score": 5},
        {"score": -5},
        {"owner": OWNER},
        {"when": WHEN},
        {"tags": 5},
        {"tags": "tag 5"},
        {"tags": {"$all": [5, "tag 5"]}},
        {"tags": {"$in": [5, "x", -1]}},
        {"score": {"$in": [1, 2, 3]}},
        {"owner": {"$in": [OWNER, None]}, "score": 5},
        {"info.a.b": "info 5"},
        {"tags.a": 5},
        {"tags.a": {"$in": [5, 6]}},
        {"info": {"a": {"b": "info 5"}}},
        {"unknown": 5},
        {"$or": [{"score": 5}, {"name": "name 6"}]},
    ],
)
def test_equality_is_served_by_the_index_on_all_data(rows, where):
    assert "thing_data" in plan(rows, where)


@pytest.mark.parametrize(
    ("fields", "where", "order"),
    [
        (("score",), {"score": {"$gt": 5, "$lt": 9}}, None),
        (("score",), {"score": 5}, None),
        (("score",), {"score": {"$in": [5, 6]}}, None),
        (("score",), {}, "score"),
        (("score",), {}, "-score"),
        (("score",), {"score": {"$gt": 100}}, "-score"),
        (("name",), {"name": {"$gt": "name 999"}}, None),
        (("name",), {"name": {"$regex": "^\\Qname 77\\E"}}, None),
        (("name",), {"name": {"$regex": "^name 77.*5$"}}, None),
        (("name",), {"name": "name 5"}, None),
        (("when",), {"when": {"$lt": WHEN}}, None),
        (("when",), {}, "-when"),
        (("owner",), {"owner": OWNER}, None),
        (("title", "score"), {"title": "title 5"}, "-score"),
        (("createdAt", "objectId"), {}, "-createdAt"),
        (("score", "createdAt"), {"score": {"$gt": 5}}, "-score,-createdAt"),
        (("title", "score"), {"title": "title 5", "score": {"$gt": 5000}}, None),
        (("flag", "score"), {"flag": True, "score": 500}, "when"),
        (("flag", "score", "when"), {"flag": {"$in": [True]}, "score": 500}, "-when"),
        (("score",), {"score": {"$exists": False}}, None),
        (("when",), {"when": None}, None),
    ],
)
def test_declared_indexes_serve_ranges_prefixes_orders_and_equality(rows, fields, where, order):
    table = declared(*fields)
    columns = ", ".join(index_column(table, name) for name in fields)
    rows.execute("BEGIN")
    rows.execute(f"CREATE INDEX declared ON thing ({columns})")
    rows.execute("ANALYZE thing")
    results = plan(rows, where, table, order)
    rows.execute("ROLLBACK")
    assert "declared" in results


def test_equality_on_a_field_behind_the_first_of_a_declared_index_keeps_the_index_on_all_data(rows):
    assert "thing_data" in plan(rows, {"name": "name 5"}, declared("score", "name"))
    assert "thing_data" in plan(
        rows, {"score": {"$gt": 5}, "name": "name 5"}, declared("score", "name")
    )


@pytest.mark.parametrize(
    "where",
    [
        {"place": {"$nearSphere": POINT, "$maxDistanceInKilometers": 20}},
        {"place": {"$geoWithin": {"$centerSphere": [POINT, 0.001]}}},
        {"place": {"$within": {"$box": [POINT, {**POINT, "latitude": 11}]}}},
        {"place": {"$geoWithin": {"$polygon": [POINT, {**POINT, "latitude": 11}, [21, 11]]}}},
    ],
)
def test_a_declared_geo_index_serves_what_is_near_or_within(rows, where):
    assert "declared" in plan_with_geo_index(rows, where)


@pytest.mark.parametrize(
    "where",
    [
        {"place": {"$nearSphere": NEAR_DATE_LINE, "$maxDistanceInKilometers": 50}},
        {"place": {"$geoWithin": {"$centerSphere": [NEAR_DATE_LINE, 0.01]}}},
        {"place": {"$within": {"$box": [NEAR_DATE_LINE, {**POINT, "longitude": -179.9}]}}},
    ],
)
def test_a_declared_geo_index_finds_both_sides_of_the_date_line(rows, where):
    assert plan_with_geo_index(rows, where).count("declared") == 2


def plan_with_geo_index(connection: psycopg.Connection[Any], where: Any) -> str:
    expression = column_expression(GENERIC, "place")
    connection.execute("BEGIN")
    connection.execute(
        f"CREATE INDEX declared ON thing USING {index_method('GeoPoint')} (({expression}))"
    )
    connection.execute("ANALYZE thing")
    lines = plan(connection, where)
    connection.execute("ROLLBACK")
    return lines


def test_a_declared_text_index_serves_a_search(rows):
    index = IndexDeclaration("i", (("name", "text"), ("title", "text")))
    schema = type(GENERIC.schema)("Thing", GENERIC.schema.fields, indexes={"i": index})
    table = ClassTable("Thing", 1, 1, '"thing"', schema)
    document = document_expression(table, ["name", "title"])
    rows.execute("BEGIN")
    rows.execute(f"CREATE INDEX declared ON thing USING gin ({document})")
    rows.execute("ANALYZE thing")
    results = plan(rows, {"$text": {"$search": {"$term": '"name 77"'}}}, table)
    rows.execute("ROLLBACK")
    assert "declared" in results


def test_ids_are_served_by_the_primary_key(rows):
    assert "thing_pkey" in plan(rows, {"objectId": "o5"})
    assert "thing_pkey" in plan(rows, {"objectId": {"$in": ["o5", "o6"]}})
    assert "thing_pkey" in plan(rows, {}, order="objectId")
