"""Which objects of another class ``$lookup`` joins to a document."""

from __future__ import annotations

from objects.core.pipeline.expressions import Path
from objects.sql.fragments import Sql
from objects.sql.pipeline.jsonb import once, text_parameter
from objects.sql.tables import ClassTable

_AS_ARRAY = (
    "CASE WHEN jsonb_typeof(a) = 'array' THEN a"
    " ELSE jsonb_build_array(COALESCE(a, 'null'::jsonb)) END"
)


def joins(local: Sql, path: Path, foreign: Sql, table: ClassTable, alias: str) -> Sql:
    """Return the condition that objects of the table are joined to a local value.

    ``path`` is the one of the foreign field, and ``foreign`` reads it under ``alias``.
    """
    locals_ = "jsonb_array_elements(" + once([local], _AS_ARRAY) + ") AS l(v)"
    if path == ("objectId",):
        ids = (
            "SELECT CASE WHEN jsonb_typeof(l.v) = 'string' THEN l.v #>> '{}'"
            " WHEN l.v->>'__type' = 'Pointer' AND l.v->>'className' = "
            + text_parameter(table.class_name)
            + " THEN l.v->>'objectId' END FROM "
            + locals_
        )
        return f"{alias}.object_id = ANY(ARRAY(" + ids + "))"
    same = (
        "EXISTS (SELECT 1 FROM "
        + locals_
        + ", jsonb_array_elements("
        + once([foreign], _AS_ARRAY)
        + ") AS x(v) WHERE x.v = l.v OR (jsonb_typeof(l.v) = 'string'"
        " AND x.v->>'__type' = 'Pointer' AND x.v->>'objectId' = l.v #>> '{}'))"
    )
    if len(path) > 1 or path[0] in table.columns or path[0] in ("createdAt", "updatedAt"):
        return same
    return _may_contain(path[0], locals_, alias) + " AND " + same


def _may_contain(name: str, locals_: Sql, alias: str) -> Sql:
    """A condition that the index on ``data`` serves; all objects fulfil it for null."""
    key = text_parameter(name)
    pointer = "jsonb_build_object('__type', 'Pointer', 'objectId', l.v)"
    contents = [
        "l.v",
        "jsonb_build_array(l.v)",
        f"CASE WHEN jsonb_typeof(l.v) = 'string' THEN {pointer} ELSE l.v END",
        f"jsonb_build_array(CASE WHEN jsonb_typeof(l.v) = 'string' THEN {pointer} ELSE l.v END)",
    ]
    rows = Sql("")
    for index, content in enumerate(contents):
        row = "(CASE WHEN l.v = 'null'::jsonb THEN '{}'::jsonb ELSE jsonb_build_object(" + key
        rows = rows + (", " if index else "") + row + f", {content}) END)"
    return (
        f"{alias}.data @> ANY(ARRAY(SELECT p.v FROM "
        + locals_
        + " CROSS JOIN LATERAL (VALUES "
        + rows
        + ") AS p(v)))"
    )
