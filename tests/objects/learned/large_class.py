"""Classes with many objects, queries of them, and what the database has because of it."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection

from objects.core.indexes.shapes import served_equality
from objects.core.names import ClassName, Subject
from objects.core.query.parser import parse_order, parse_where
from objects.definitions import registry
from objects.learned import shape_counts
from objects.sql.compiler import compile_query, order_by
from objects.sql.tables import ClassTable

GAME = ClassName(Subject("Game"))
FIELDS = {
    "rank": {"type": "Number"},
    "level": {"type": "Number"},
    "name": {"type": "String"},
    "status": {"type": "String"},
    "tags": {"type": "Array"},
    "spot": {"type": "GeoPoint"},
    "when": {"type": "Date"},
}


def make_class(master: Any, objects: int = 20_000, **schema: Any) -> ClassTable:
    """The class Game with so many objects."""
    reply = master.post("/schemas/Game", {"fields": FIELDS, **schema})
    assert reply.status == 200, reply.json
    table = game()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table.relation} (class_id, object_id, created_at, updated_at, data)"
            " SELECT %s, 'o' || n, now() - n * interval '1 s', now(), jsonb_build_object("
            " 'rank', (n * 7919) %% %s, 'level', n %% 10, 'name', 'name ' || n %% 5000,"
            " 'status', (ARRAY['open', 'done', 'late'])[n %% 3 + 1],"
            " 'tags', jsonb_build_array('a', 'b', n), 'text', repeat('x', 100),"
            " 'when', jsonb_build_object('__type', 'Date', 'iso', to_char('2024-01-01'::timestamp"
            " + n * interval '1 s', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')),"
            " 'spot', jsonb_build_object('__type', 'GeoPoint', 'latitude', n %% 80,"
            " 'longitude', n %% 170)) FROM generate_series(1, %s) AS n",
            [table.class_id, max(objects, 1), objects],
        )
        cursor.execute(f"ANALYZE {table.relation}")
    return table


def game() -> ClassTable:
    """The class as the database has it."""
    table = registry.current(GAME)
    assert table is not None
    return table


def ask(where: Any, order: str | None = None, *, calls: int = 40, seconds: float = 0.1) -> None:
    """Queries of this shape that took so long each, known to the database."""
    table = game()
    keys = parse_order(order or "createdAt")
    for _ in range(calls):
        shape_counts.note(table, parse_where(where), keys, seconds, 20)
    assert shape_counts.flush()


def auto_indexes() -> dict[str, bool]:
    """The learned indexes that the database has, with whether each is valid."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            # Tables of classes of earlier tests are still there.
            " JOIN objects_class o ON i.indrelid = to_regclass('objects_object_' || o.id)"
            " WHERE c.relname ~ '^objects_auto_[0-9]'"
        )
        return dict(cursor.fetchall())


def plan(where: Any, order: str | None = None) -> str:
    """PostgreSQL's plan of a find, as ``store.find`` asks for it."""
    table = game()
    tree, keys = parse_where(where), parse_order(order or "createdAt")
    led = served_equality(table.learned, tree, keys)
    condition = compile_query(tree, table, "t", None, led)
    sorting = order_by(keys, table, "t", tree)
    with connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN (FORMAT JSON) SELECT * FROM {table.relation} t WHERE {condition.text}"
            f" {sorting.text} LIMIT 20",
            [*condition.params, *sorting.params],
        )
        return json.dumps(cursor.fetchone()[0])


def is_building() -> bool:
    """Whether another connection is building an index."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database()"
            " AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND state = 'active'"
            " AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone() is not None
