"""Two classes in the tables of one connection, and the same objects in memory.

``Thing`` has a field of every kind. It is stored twice: with all fields in ``data``, and with most
of them promoted to columns. Both must answer every query as the objects in memory do.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from typing import Any

import psycopg

from backend.kernel.json_types import Json
from objects.core.access.acl import parse_acl
from objects.core.indexes.shapes import served_equality
from objects.core.query.predicate import predicate, sorted_objects
from objects.core.query.tree import Everything, OrderKey, Query, SubQuery
from objects.core.schema.definition import ClassSchema, FieldType, IndexDeclaration
from objects.core.values import pointer
from objects.sql.compiler import compile_query, order_by
from objects.sql.tables import ClassTable, Column

Objects = Sequence[dict[str, Any]]

THING_FIELDS = {
    "name": FieldType("String"),
    "title": FieldType("String"),
    "score": FieldType("Number"),
    "count": FieldType("Number"),
    "flag": FieldType("Boolean"),
    "when": FieldType("Date"),
    "owner": FieldType("Pointer", "Other"),
    "place": FieldType("GeoPoint"),
    "area": FieldType("Polygon"),
    "blob": FieldType("Bytes"),
    "file": FieldType("File"),
    "tags": FieldType("Array"),
    "info": FieldType("Object"),
    "likes": FieldType("Relation", "Other"),
    "friends": FieldType("Relation", "Thing"),
}
OTHER_FIELDS = {
    "name": FieldType("String"),
    "score": FieldType("Number"),
    "tags": FieldType("Array"),
    "thing": FieldType("Pointer", "Thing"),
}
INDEXES = {
    "title": IndexDeclaration("title", (("title", 1),)),
    "score": IndexDeclaration("score", (("score", -1), ("when", 1))),
    "owner": IndexDeclaration("owner", (("owner", 1), ("flag", 1))),
}
COLUMNS = {
    "name": Column('"name"', "text"),
    "score": Column('"score"', "numeric"),
    "count": Column('"count"', "bigint"),
    "flag": Column('"flag"', "boolean"),
    "when": Column('"when"', "timestamptz"),
    "owner": Column('"owner_id"', "text"),
    "place": Column('"place"', "jsonb"),
    "area": Column('"area"', "jsonb"),
    "file": Column('"file"', "jsonb"),
    "tags": Column('"tags"', "jsonb"),
    "info": Column('"info"', "jsonb"),
    "title": Column('"title"', "jsonb"),
}

GENERIC = ClassTable("Thing", 1, 1, '"thing"', ClassSchema("Thing", THING_FIELDS))
DECLARED = ClassTable("Thing", 1, 1, '"thing"', ClassSchema("Thing", THING_FIELDS, indexes=INDEXES))
LEARNED = ClassTable(
    "Thing",
    1,
    1,
    '"thing"',
    ClassSchema("Thing", THING_FIELDS, indexes={"title": INDEXES["title"]}),
    learned=(
        (("name", 1),),
        (("title", 1), ("name", 1)),
        (("name", 1), ("score", -1)),
        (("owner", 1), ("flag", 1), ("createdAt", 1)),
        (("score", 1), ("when", 1)),
        (("place", "2dsphere"),),
    ),
)
PROMOTED = ClassTable(
    "Thing",
    1,
    1,
    '"promoted_thing"',
    ClassSchema("Thing", THING_FIELDS),
    columns=COLUMNS,
    is_partition=False,
)
BOUNDED = ClassTable(
    "Thing",
    1,
    1,
    '"bounded_thing"',
    ClassSchema("Thing", THING_FIELDS),
    indexed="pg_temp.indexed_of_small_objects",
)
OTHER = ClassTable("Other", 2, 1, '"other"', ClassSchema("Other", OTHER_FIELDS))
THINGS = {
    "in data": GENERIC,
    "with declared indexes": DECLARED,
    "with learned indexes": LEARNED,
    "promoted": PROMOTED,
    "with the index of all fields": BOUNDED,
}

# As the service's function, but an object takes at most 64 bytes in the index: many of the objects
# of these tests leave something out.
_BOUNDED_FUNCTION = (
    import_module("objects.migrations.0022_bounded_index")
    .FUNCTION.replace("objects_indexed_1", BOUNDED.indexed)
    .replace("8192", "64")
)

_COMMON = (
    'object_id text COLLATE "C" PRIMARY KEY, created_at timestamptz NOT NULL,'
    " updated_at timestamptz NOT NULL, read_acl text[], write_acl text[], data jsonb NOT NULL"
)


class World:
    """The stored objects. A ``Scope`` for the compiler, a ``Lookup`` for the predicate."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        columns = ", ".join(f"{column.name} {column.type}" for column in COLUMNS.values())
        connection.execute(f"CREATE TEMP TABLE thing ({_COMMON})")
        connection.execute(_BOUNDED_FUNCTION)
        connection.execute(f"CREATE TEMP TABLE bounded_thing ({_COMMON})")
        connection.execute(
            f"CREATE INDEX ON bounded_thing USING gin ({BOUNDED.indexed}(data) jsonb_path_ops)"
        )
        connection.execute(f"CREATE TEMP TABLE other ({_COMMON})")
        connection.execute(f"CREATE TEMP TABLE promoted_thing ({_COMMON}, {columns})")
        connection.execute(
            'CREATE TEMP TABLE objects_relation (class_id bigint, key text COLLATE "C",'
            ' owning_id text COLLATE "C", related_id text COLLATE "C")'
        )
        self.objects: dict[str, Objects] = {}
        self._is_bounded_filled = False
        self.related: dict[tuple[str, str], list[Json]] = {}

    def fill(
        self,
        things: Objects,
        remaining: Objects = (),
        related: dict[tuple[str, str], list[Json]] | None = None,
    ) -> None:
        """Store these objects only; ``related``: (owner's id, key) → members."""
        self.connection.execute("TRUNCATE thing, other, promoted_thing, objects_relation")
        self.objects = {"Thing": things, "Other": remaining}
        self.related = related or {}
        for table, objects in ((GENERIC, things), (PROMOTED, things), (OTHER, remaining)):
            self._insert(table, objects)
        self._is_bounded_filled = False
        for (owning_id, key), members in self.related.items():
            for member in members:
                assert isinstance(member, dict)
                self.connection.execute(
                    "INSERT INTO objects_relation VALUES (1, %s, %s, %s)",
                    (key, owning_id, member["objectId"]),
                )

    def fill_bounded(self, table: ClassTable) -> None:
        """Fill the table with the index of all fields before it is read: the index costs time."""
        if table is BOUNDED and not self._is_bounded_filled:
            self.connection.execute("TRUNCATE bounded_thing")
            self._insert(BOUNDED, self.objects["Thing"])
            self._is_bounded_filled = True

    def _insert(self, table: ClassTable, objects: Objects) -> None:
        rows = [_row(table, obj) for obj in objects]
        if not rows:
            return
        names = ", ".join(rows[0])
        values = ", ".join("(" + ", ".join(["%s"] * len(row)) + ")" for row in rows)
        self.connection.execute(
            f"INSERT INTO {table.relation} ({names}) VALUES {values}",  # type: ignore[arg-type]
            [value for row in rows for value in row.values()],
        )

    # --- Scope ---

    def table(self, class_name: str) -> tuple[ClassTable, Query] | None:
        tables = {"Thing": GENERIC, "Other": OTHER}
        return (tables[class_name], Everything()) if class_name in tables else None

    # --- Lookup ---

    def find(self, query: SubQuery) -> Objects:
        return self.in_memory(query.where, query.class_name, query.order, query.limit, query.skip)

    def members(self, class_name: str | None, object_id: str, key: str) -> Collection[Json]:
        owners = ids(self.objects["Thing"])
        if class_name not in (None, "Thing") or object_id not in owners:
            return ()
        return self.related.get((object_id, key), ())

    # --- both readings ---

    def in_memory(
        self,
        where: Query,
        class_name: str = "Thing",
        order: Sequence[OrderKey] = (),
        limit: int | None = None,
        skip: int = 0,
    ) -> Objects:
        holds = predicate(where, self, class_name)
        response = [obj for obj in self.objects.get(class_name, ()) if holds(obj)]
        end = None if limit is None else skip + limit
        return sorted_objects(response, order, where)[skip:end]  # type: ignore[return-value]

    def in_sql(
        self, where: Query, table: ClassTable = GENERIC, order: Sequence[OrderKey] = ()
    ) -> list[str]:
        led = served_equality(table.learned, where, order)
        condition = compile_query(where, table, "t", self, led)
        sorting = order_by(order, table, "t", where)
        self.fill_bounded(table)
        # Of a few objects PostgreSQL would read all.
        scan = "off" if table.indexed else "on"
        self.connection.execute(f"SET enable_seqscan = {scan}")
        rows = self.connection.execute(
            f"SELECT t.object_id FROM {table.relation} AS t"  # type: ignore[arg-type]
            f" WHERE {condition.text} {sorting.text}",
            [*condition.params, *sorting.params],
        ).fetchall()
        self.connection.execute("SET enable_seqscan = on")
        return [row[0] for row in rows]


def ids(objects: Iterable[dict[str, Any]]) -> list[str]:
    return [obj["objectId"] for obj in objects]


def thing(object_id: str, **fields: Any) -> dict[str, Any]:
    """An object in wire form."""
    stamps = {"createdAt": "2024-01-01T00:00:00.000Z", "updatedAt": "2024-01-01T00:00:00.000Z"}
    return {"objectId": object_id, **stamps, **fields}


def pointers_to_others(*object_ids: str) -> list[Json]:
    return [pointer("Other", object_id) for object_id in object_ids]


def friends(*object_ids: str) -> list[Json]:
    return [pointer("Thing", object_id) for object_id in object_ids]


_FIXED = frozenset({"objectId", "createdAt", "updatedAt", "ACL"})


def _row(table: ClassTable, obj: dict[str, Any]) -> dict[str, Any]:
    acl = parse_acl(obj["ACL"]) if "ACL" in obj else None
    row: dict[str, Any] = {
        "object_id": obj["objectId"],
        "created_at": obj["createdAt"],
        "updated_at": obj["updatedAt"],
        "read_acl": None if acl is None or acl.read_ids is None else list(acl.read_ids),
        "write_acl": None if acl is None or acl.write_ids is None else list(acl.write_ids),
    }
    in_data = {}
    for name, value in obj.items():
        is_relation = isinstance(value, dict) and value.get("__type") == "Relation"
        if name not in _FIXED and name not in table.columns and not is_relation:
            in_data[name] = value
    row["data"] = json.dumps(in_data)
    for name, column in table.columns.items():
        row[column.name] = _column_value(column, obj.get(name))
    return row


def _column_value(column: Column, value: Any) -> Any:
    if column.type == "jsonb":
        # A missing field and null are both NULL in most columns, but jsonb can tell them apart.
        return None if value is None else json.dumps(value)
    if isinstance(value, dict):
        return value.get("iso") or value["objectId"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value
