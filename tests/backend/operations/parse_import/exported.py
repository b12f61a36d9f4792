"""An app as ``mongoexport`` has written it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bcrypt

TIMES = {
    "_created_at": {"$date": "2020-01-02T03:04:05.678Z"},
    "_updated_at": {"$date": "2021-01-02T03:04:05.678Z"},
}
TOKEN = "r:0123456789abcdef0123456789abcdef"
PASSWORD = "correct horse battery staple"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$")
SCHEMAS = [
    {"_id": "_User", "nick": "string"},
    {"_id": "_Session"},
    {"_id": "_Role"},
    {
        "_id": "Note",
        "text": "string",
        "author": "*_User",
        "readers": "relation<_User>",
        "picture": "file",
        "_metadata": {
            "class_permissions": {
                "find": {"role:Staff": True},
                "get": {"*": True},
                "create": {},
                "update": {},
                "delete": {},
                "addField": {},
            },
            "indexes": {"by_text": {"text": 1}},
        },
    },
]
USERS = [
    {"_id": "ann", "username": "Ann", "email": "ann@example.org", "_hashed_password": HASH},
    {"_id": "bob", "username": "bob", "_auth_data_google": {"id": "7", "access_token": "secret"}},
]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
PICTURE = "0123456789abcdef0123456789abcdef_a.png"


def note(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "_id": f"note{number:04d}",
        **TIMES,
        "text": f"text {number}",
        "_p_author": "_User$ann",
        "_rperm": ["ann", "role:Staff"],
        "_wperm": ["ann"],
        **fields,
    }


def problems(tmp_path: Path) -> list[dict[str, str]]:
    lines = (tmp_path / "state.problems.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


ROW_TIMES = {"createdAt": "2020-01-02T03:04:05.678+00:00", "updatedAt": "2021-01-02T03:04:05+00:00"}


def table_row(object_id: str, **fields: Any) -> dict[str, Any]:
    """A row of a Parse Server's PostgreSQL table, as ``row_to_json`` writes it."""
    return {"objectId": object_id, **ROW_TIMES, "_rperm": None, "_wperm": None, **fields}
