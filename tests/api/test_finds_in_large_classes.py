"""Finds in classes that PostgreSQL takes for large return the same objects as in small ones."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.db import connection

from objects import large_classes
from objects.compiler import compile_query, order_by
from objects.core.query_parser import parse_order, parse_where
from objects.sql import Sql
from tests.learned.helpers import game, make_class
from tests.rest import Api

OBJECTS = 3000
"""More than ``FEW``, so that both halves of the statement are used."""

WHERES = {
    "one object": {"tags": 77},
    "no object": {"tags": "none"},
    "a third of the objects": {"status": "open"},
    "two thirds of the objects": {"status": {"$in": ["open", "done"]}},
    "every object": {"tags": {"$all": ["a", "b"]}},
    "equality and a range": {"status": "late", "rank": {"$lt": 1500}},
    "equality in alternatives": {"$or": [{"status": "late"}, {"rank": 5}]},
    "a word that all have": {"name": {"$text": {"$search": {"$term": "name"}}}},
    "a word of one": {"name": {"$text": {"$search": {"$term": "77"}}}},
    "a missing field": {"other": None, "status": "done"},
}
ORDERS = (None, "-createdAt", "objectId", "-objectId", "rank", "-rank,createdAt", "status")
PAGES = ({}, {"limit": 1}, {"limit": 7, "skip": 5}, {"limit": 1500, "skip": 2})


@pytest.fixture
def class_of_3000(master: Api) -> Iterator[Api]:
    large_classes.forget_sizes()
    indexes = {"by_rank": {"rank": 1}, "by_name": {"name": "text"}}
    make_class(master, OBJECTS, indexes=indexes)
    yield master
    large_classes.forget_sizes()


def take_for_large() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET reltuples = %s WHERE oid = to_regclass(%s)",
            [large_classes.LARGE, game().storage],
        )
    large_classes.forget_sizes()


def test_a_large_class_answers_as_a_small_one(class_of_3000: Api) -> None:
    def answers() -> list[object]:
        return [
            class_of_3000.results(
                "Game", where=where, **page, **({"order": order} if order else {})
            )
            for where in WHERES.values()
            for order in ORDERS
            for page in PAGES
        ]

    assert not large_classes.is_large(game())
    expected = answers()
    take_for_large()
    assert large_classes.is_large(game())
    assert answers() == expected


def test_callers_see_their_own_objects_in_a_large_class(class_of_3000: Api, client: Api) -> None:
    take_for_large()
    class_of_3000.make("Game", status="hidden", ACL={"nobody": {"read": True}})
    shown = class_of_3000.make("Game", status="hidden", ACL={"*": {"read": True}})
    found = client.results("Game", where={"status": "hidden"})
    assert [obj["objectId"] for obj in found] == [shown]


@pytest.mark.parametrize(
    ("where", "order", "is_guessed"),
    [
        ({"status": "open"}, "createdAt", True),
        ({"status": "open"}, "rank", True),
        ({"status": "open"}, "level", False),  # no index gives this order
        ({"rank": 5}, "createdAt", False),  # PostgreSQL has statistics of an index
        ({"rank": {"$gt": 5}}, "createdAt", False),
        ({"status": {"$ne": "open"}}, "createdAt", False),
        ({"name": {"$text": {"$search": {"$term": "77"}}}}, "createdAt", True),
    ],
)
def test_only_what_is_guessed_is_looked_up_first(
    class_of_3000: Api, where: object, order: str, is_guessed: bool
) -> None:
    assert large_classes.is_guessed(game(), parse_where(where), parse_order(order)) is is_guessed


def test_a_value_that_postgresql_takes_for_frequent_is_looked_up(class_of_3000: Api) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT gin_clean_pending_list(indexrelid) FROM pg_index"
            " WHERE indrelid = to_regclass(%s) AND pg_get_indexdef(indexrelid) ~ 'jsonb_path_ops'",
            [game().storage],
        )
        cursor.execute(
            "SELECT (histogram_bounds::text::jsonb[])[50] -> 'tags' -> 2 FROM pg_stats"
            " WHERE tablename = %s AND attname = 'data'",
            [game().storage.strip('"')],
        )
        number = json.loads(cursor.fetchone()[0])
    condition = compile_query(parse_where({"tags": number}), game())
    sorting, page = order_by(parse_order("createdAt"), game()), Sql(" LIMIT 1")
    walk = f"SELECT * FROM {game().relation} t WHERE " + condition + " " + sorting + page
    assert rows_left_out(walk) > 100
    assert rows_left_out(large_classes.selection(game(), condition, sorting, page)) == 0


def rows_left_out(statement: Sql) -> int:
    """The rows that PostgreSQL read and that weren't looked for."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}", statement.params)
        (plan,) = cursor.fetchone()[0]

    def count(node: dict) -> int:
        below = sum(count(part) for part in node.get("Plans", ()))
        return int(node.get("Rows Removed by Filter", 0)) + below

    return count(plan["Plan"])
