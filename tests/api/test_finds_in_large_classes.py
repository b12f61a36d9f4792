"""Finds in classes that PostgreSQL takes for large return the same objects as in small ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from objects.core.query.parser import parse_order, parse_where
from objects.sql.compiler import compile_query, order_by
from objects.sql.fragments import Sql
from objects.storage import large_classes
from objects.storage.large_classes import VALUE_MATCHES, WORD_MATCHES
from tests.objects.learned.large_class import game, make_class
from tests.rest import Api

OBJECTS = WORD_MATCHES + 2000

WHERES: dict[str, Any] = {
    "one object": {"tags": 77},
    "no object": {"tags": "none"},
    "one less than is sorted": {"edge": "a"},
    "as many as are sorted": {"edge": "b"},
    "one more than is sorted": {"edge": "c"},
    "a third of the objects": {"status": "open"},
    "two thirds of the objects": {"status": {"$in": ["open", "done"]}},
    "every object": {"tags": {"$all": ["a", "b"]}},
    "equality and a range": {"status": "late", "rank": {"$lt": 1500}},
    "equality in alternatives": {"$or": [{"status": "late"}, {"rank": 5}]},
    "a word that all have": {"name": {"$text": {"$search": {"$term": "name"}}}},
    "a word of some": {"name": {"$text": {"$search": {"$term": "77"}}}},
    "a missing field": {"other": None, "status": "done"},
}
ORDERS = (None, "-createdAt", "objectId", "-objectId", "rank", "-rank,createdAt", "status")
PAGES: tuple[dict[str, int], ...] = (
    {"limit": 1},
    {"limit": 7, "skip": 5},
    {"limit": 100, "skip": 40},
    {"limit": 1500, "skip": 2},
)


@pytest.fixture
def large(master: Api) -> Iterator[Api]:
    large_classes.forget_sizes()
    indexes = {"by_rank": {"rank": 1, "level": 1}, "by_name": {"name": "text"}}
    fields = {"edge": {"type": "String"}}
    make_class(master, OBJECTS, indexes=indexes)
    assert master.put("/schemas/Game", {"fields": fields}).status == 200
    with connection.cursor() as cursor:
        first = 1
        for edge, number in zip("abc", range(VALUE_MATCHES - 1, VALUE_MATCHES + 2), strict=True):
            cursor.execute(
                f"UPDATE {game().relation} SET data = data || jsonb_build_object('edge', %s::text)"
                " WHERE substr(object_id, 2)::int BETWEEN %s AND %s",
                [edge, first, first + number - 1],
            )
            first += number
    yield master
    large_classes.forget_sizes()


def take_for_large() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET reltuples = %s WHERE oid = to_regclass(%s)",
            [large_classes.LARGE, game().storage],
        )
    large_classes.forget_sizes()
    assert large_classes.is_large(game())


def sorted_matches(
    where: Any, order: str = "createdAt", last: int = 20, params: int = 1
) -> int | None:
    first = read_first(where, order, last, params)
    return None if first is None else first.most


def read_first(where: Any, order: str = "createdAt", last: int = 1, params: int = 1) -> Any:
    return large_classes.read_first(game(), parse_where(where), parse_order(order), last, params)


@pytest.mark.slow
def test_a_large_class_answers_as_a_small_one(large: Api) -> None:
    def answers() -> dict[tuple[str, str | None, int], Any]:
        return {
            (name, order, number): large.results(
                "Game", where=where, **page, **({"order": order} if order else {})
            )
            for name, where in WHERES.items()
            for order in ORDERS
            for number, page in enumerate(PAGES)
        }

    assert not large_classes.is_large(game())
    expected = answers()
    assert len(expected["one less than is sorted", None, 2]) == 100
    take_for_large()
    assert answers() == expected


@pytest.mark.parametrize("number", [3, VALUE_MATCHES + 5])
def test_callers_see_the_objects_that_they_may_read(large: Api, client: Api, number: int) -> None:
    take_for_large()
    for access in ("nobody", "*"):
        entries = [
            {
                "method": "POST",
                "path": "/api/classes/Game",
                "body": {"status": "new", "rank": rank, "ACL": {access: {"read": True}}},
            }
            for rank in range(number)
        ]
        for first in range(0, number, 50):
            assert large.post("/batch", {"requests": entries[first : first + 50]}).status == 200
    assert len(large.results("Game", where={"status": "new"}, limit=1000)) == 2 * number
    shown = client.results("Game", where={"status": "new"}, limit=1000)
    assert sorted(obj["rank"] for obj in shown) == list(range(number))


def test_what_postgresql_has_no_statistics_of_is_sorted_first(large: Api) -> None:
    take_for_large()
    search = {"$text": {"$search": {"$term": "77"}}}
    assert sorted_matches({"status": "open"}) == VALUE_MATCHES
    assert sorted_matches({"status": "open"}, "-objectId") == VALUE_MATCHES
    assert sorted_matches({"status": "open"}, "rank") == VALUE_MATCHES
    assert sorted_matches({"info.a": 1}) == VALUE_MATCHES
    assert sorted_matches({"status": {"$in": ["open", "done"]}}) == VALUE_MATCHES
    assert sorted_matches({"tags": {"$all": ["a"]}}) == VALUE_MATCHES
    assert sorted_matches({"status": "open", "rank": {"$gt": 5}}) == VALUE_MATCHES
    assert sorted_matches({"level": 5}) == VALUE_MATCHES
    assert sorted_matches({"status": "open"}, last=400) == 1200
    assert sorted_matches({"name": search}) == WORD_MATCHES
    assert sorted_matches(search) == WORD_MATCHES


def test_everything_else_is_left_to_postgresql(large: Api) -> None:
    assert sorted_matches({"status": "open"}) is None  # the class is small
    take_for_large()
    german = {"$search": {"$term": "77", "$language": "german"}}
    accents = {"$search": {"$term": "77", "$diacriticSensitive": True}}
    assert sorted_matches({"status": "open"}, "level") is None  # no index gives this order
    assert sorted_matches({"status": "open"}, last=1001) is None
    assert sorted_matches({"status": None}) is None
    assert sorted_matches({"status": {"$ne": "open"}}) is None
    assert sorted_matches({"status": "open"}, params=1001) is None
    assert sorted_matches({"tags": {"$in": [{"a": 1}, 17]}}) is None  # no index serves it
    assert sorted_matches({"info.0.a": 1}) is None
    assert sorted_matches({"$or": [{"status": "open"}, {"status": "late"}]}) is None
    assert sorted_matches({"rank": {"$gt": 5}}) is None
    assert sorted_matches({"rank": 5, "level": 5}) is None  # the declared index has statistics
    assert sorted_matches({"objectId": "o5", "status": "open"}) is None
    assert sorted_matches({"name": {"$text": german}}) is None
    assert sorted_matches({"name": {"$text": accents}}) is None
    assert sorted_matches({"status": {"$text": {"$search": {"$term": "open"}}}}) is None


def test_a_value_that_postgresql_takes_for_frequent_is_read_from_the_index(large: Api) -> None:
    clean_index()
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {game().relation}")
        cursor.execute(
            "SELECT (histogram_bounds::text::jsonb[])[50] -> 'tags' -> 2 FROM pg_stats"
            " WHERE tablename = %s AND attname = 'data'",
            [game().storage.strip('"')],
        )
        number = json.loads(cursor.fetchone()[0])
    take_for_large()
    plain, sorted_first = statements({"tags": number})
    assert rows_left_out(plain) > 100
    assert rows_left_out(sorted_first) == 0


def test_what_no_index_serves_is_not_read_first(large: Api) -> None:
    """Else the whole class might be read for what a few of the newest objects fulfil."""
    take_for_large()
    first = read_first({"tags": {"$all": ["a"]}, "rank": {"$gt": 5}, "info.0.a": 1})
    assert first.condition == compile_query(parse_where({"tags": {"$all": ["a"]}}), game())
    plain, sorted_first = statements({"tags": {"$all": ["a"]}, "rank": {"$gte": OBJECTS - 5}})
    assert rows_left_out(sorted_first) == rows_left_out(plain)


def test_frequent_values_that_never_meet_are_read_from_the_index(large: Api) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {game().relation} SET data = data || jsonb_build_object('parity',"
            " CASE data->>'status' WHEN 'open' THEN 'odd' ELSE 'even' END)"
        )
    clean_index()
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {game().relation}")
    take_for_large()
    plain, sorted_first = statements({"status": "open", "parity": "even"})
    assert rows_left_out(plain) == OBJECTS
    assert rows_left_out(sorted_first) == 0


def clean_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT gin_clean_pending_list(indexrelid) FROM pg_index"
            " WHERE indrelid = to_regclass(%s) AND pg_get_indexdef(indexrelid) ~ 'jsonb_path_ops'",
            [game().storage],
        )


def statements(where: Any) -> tuple[Sql, Sql]:
    """What a find with ``limit=1`` selects by, in a small class and in a large one."""
    condition = compile_query(parse_where(where), game())
    sorting, page = order_by(parse_order("createdAt"), game()), Sql(" LIMIT 1")
    plain = f"SELECT * FROM {game().relation} t WHERE " + condition + " " + sorting + page
    first = read_first(where)
    assert first is not None
    return plain, large_classes.selection(game(), condition, sorting, page, first)


def rows_left_out(statement: Sql) -> int:
    """The rows that PostgreSQL reads though they don't match."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}", statement.params)
        (plan,) = cursor.fetchone()[0]

    def count(node: dict[str, Any]) -> int:
        below = sum(count(part) for part in node.get("Plans", ()))
        removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
        return sum(int(node.get(name, 0)) for name in removed) + below

    return count(plan["Plan"])
