"""Tables of large classes: how many rows PostgreSQL has to touch for a page."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest
from django.db import connection
from django.test import Client

from backend.kernel.principal import MASTER
from objects.definitions import registry
from objects.service import classes
from tests.objects.admin.games import GAME, grid_rows, make_class
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db

FEW = 500
"""Rows that a page of 50 may touch: those shown, the one after them, and what ties cost."""

_AT_ONCE = 50_000

PAGES = {
    "the first": {},
    "the last": {"order": "createdAt"},
    "one from the middle": {"after": "@middle"},
    "one before the middle": {"before": "@middle"},
    "by an indexed field": {"order": "-score"},
    "further by an indexed field": {"order": "score", "after": "@score"},
    "back by an indexed field": {"order": "-score", "before": "@score"},
    "further among those without a value": {"order": "playedAt", "after": "@null"},
    "among the few without a value": {"order": "score", "after": "@null"},
    "by id": {"order": "objectId", "after": "@id"},
    "one that equality finds": {"where": '{"title": "game 77"}'},
    "a filter that many satisfy": {"where": '{"won": true}', "after": "@middle"},
    "a range with an index": {"where": '{"score": {"$gt": 100, "$lt": 120}}', "order": "score"},
}


def fill(rows: int) -> None:
    make_class(indexes={"by_score": {"score": 1}, "by_time": {"playedAt": 1}})
    table = registry.find("Game")
    assert table is not None
    with connection.cursor() as cursor:
        for first in range(1, rows, _AT_ONCE):
            cursor.execute(
                f"INSERT INTO {table.relation} (class_id, object_id, created_at, updated_at, data)"
                " SELECT %s, 'id' || lpad(n::text, 8, '0'),"
                " '2024-01-01'::timestamptz + n * interval '1 s', '2024-01-01', jsonb_build_object("
                " 'title', 'game ' || n, 'won', n %% 2 = 0,"
                " 'score', CASE WHEN n %% 10000 > 0 THEN n / 2 END)"
                " FROM generate_series(%s, %s) n",
                [table.class_id, first, min(first + _AT_ONCE - 1, rows)],
            )
        cursor.execute(f"ANALYZE {table.relation}")


def edges(rows: int) -> dict[str, str]:
    middle = rows // 2
    when = {"__type": "Date", "iso": _moment(middle)}
    cuts = {
        "@middle": [when, _id(middle)],
        "@score": [middle // 2, _id(middle)],
        "@null": [None, _id(middle)],
        "@id": [_id(middle), _id(middle)],
    }
    return {
        name: base64.urlsafe_b64encode(json.dumps(cut).encode()).decode().rstrip("=")
        for name, cut in cuts.items()
    }


def _id(number: int) -> str:
    return f"id{number:08}"


def _moment(second: int) -> str:
    moment = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def touched() -> tuple[int, int]:
    """Rows of the class that this transaction has read by scans, and by indexes."""
    table = registry.find("Game")
    assert table is not None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = %s",
            [table.relation.strip('"')],
        )
        return cursor.fetchone()


def look_at_pages(client: Client, rows: int) -> dict[str, tuple[float, int]]:
    """For each page the milliseconds that it took and the rows that it touched."""
    results = {}
    existing = edges(rows)
    for name, params in PAGES.items():
        before, begin = touched(), perf_counter()
        sent = {key: existing.get(value, value) for key, value in params.items()}
        page = grid_rows(client, columns="title,score,won,playedAt", size="50", **sent)
        took = (perf_counter() - begin) * 1000
        after = touched()
        assert page.status_code == 200, name
        assert page.json()["rows"], name
        results[name] = took, sum(after) - sum(before)
    return results


@pytest.mark.slow
def test_a_page_touches_the_rows_that_it_shows_and_few_others():
    fill(100_000)
    pages = look_at_pages(logged_in(), 100_000)
    assert {name: rows for name, (_, rows) in pages.items() if rows > FEW} == {}


def test_the_list_of_classes_and_the_pages_of_a_schema_touch_no_rows():
    fill(2_000)
    client = logged_in()
    before = touched()
    for path in ("/admin/objects/objectclass/", f"{GAME}fields/", f"{GAME}indexes/"):
        assert client.get(path).status_code == 200
    assert touched() == before
    assert "2,000" in client.get("/admin/objects/objectclass/").text


@pytest.mark.slow
def test_an_order_without_an_index_is_pointed_out_where_there_is_much_to_sort():
    fill(60_000)
    client = logged_in()
    assert grid_rows(client, order="title").json()["slowOrder"] == "title"
    assert grid_rows(client, order="score").json()["slowOrder"] == ""
    classes.change(MASTER, "Game", {"indexes": {"by_title": {"title": 1}}})
    assert grid_rows(client, order="title").json()["slowOrder"] == ""


@pytest.mark.slow
def test_a_million_objects(capsys):
    fill(1_000_000)
    client = logged_in()
    look_at_pages(client, 1_000_000)
    pages = look_at_pages(client, 1_000_000)
    with capsys.disabled():
        print()
        for name, (took, rows) in pages.items():
            print(f"{name:40} {took:7.1f} ms {rows:6} rows")
    assert {name: rows for name, (_, rows) in pages.items() if rows > FEW} == {}
