"""Callers of the REST API, and what imports read, for their tests."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.backend.operations.parse_import.exported import SCHEMAS, TIMES, TOKEN, USERS, note
from tests.backend.operations.parse_import.fake_server import FakeServer, running
from tests.callers import client, fresh_registry, master

__all__ = ["client", "fresh_registry", "master"]


@pytest.fixture
def api() -> Iterator[FakeServer]:
    with running() as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    """The pauses that an import makes, in seconds; pass ``pauses.append`` as its ``sleep``."""
    return []


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """Write the files of an export; ``name=rows`` replaces one."""

    def write(**files: Sequence[Any]) -> Path:
        path = tmp_path / "export"
        path.mkdir(exist_ok=True)
        contents: dict[str, Sequence[Any]] = {
            "_SCHEMA": SCHEMAS,
            "_User": [
                {**user, **TIMES, "_rperm": ["*"], "_wperm": [user["_id"]]} for user in USERS
            ],
            "_Session": [
                {
                    "_id": "session1",
                    **TIMES,
                    "_p_user": "_User$ann",
                    "_session_token": TOKEN,
                    "expiresAt": {"$date": "2099-01-01T00:00:00Z"},
                    "createdWith": {"action": "login", "authProvider": "password"},
                }
            ],
            "_Role": [{"_id": "staff", "name": "Staff", **TIMES, "_rperm": ["*"], "_wperm": []}],
            "_Join:users:_Role": [{"_id": "1", "owningId": "staff", "relatedId": "bob"}],
            "_Join:readers:Note": [{"_id": "1", "owningId": "note0001", "relatedId": "bob"}],
            "Note": [note(number) for number in range(3)],
            "_GlobalConfig": [
                {
                    "_id": 1,
                    "params": {"a": {"$numberInt": "1"}, "b": "x"},
                    "masterKeyOnly": {"b": True},
                }
            ],
            "_Hooks": [{"_id": "1", "functionName": "far", "url": "https://hooks.example.org/far"}],
            **files,
        }
        for name, rows in contents.items():
            lines = "\n".join(json.dumps(row) for row in rows)
            (path / f"{name}.json").write_text(lines)
        return path

    return write


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    def command(source: Path, *options: str) -> str:
        out = io.StringIO()
        state = str(tmp_path / "state.json")
        call_command(
            "import_parse", str(source), "--state", state, *options, stdout=out, stderr=out
        )
        return out.getvalue()

    return command
