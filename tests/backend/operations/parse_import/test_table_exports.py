"""Tables exported by psql arrive unchanged; formats that change them are refused with a remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connection
from psycopg import sql

from tests.backend.operations.parse_import.exported import table_row
from tests.rest import Api

SCHEMA = {"className": "Note", "schema": {"fields": {"text": {"type": "String"}}}}
TEXTS = [
    'line1\nline2\ttab, "quoted" and C:\\new',
    "é ☃ 😀 \u2028 \x01\x1f\x7f",
    "C:\\new",
    "\\",
    "",
]
ROWS = [table_row(f"note{number}", text=text) for number, text in enumerate(TEXTS)]


@pytest.fixture
def exported(tmp_path: Path) -> Callable[..., Path]:
    """Write a folder with the class Note, whose file has these lines."""

    def write(*lines: str) -> Path:
        path = tmp_path / "tables"
        path.mkdir()
        (path / "_SCHEMA.json").write_text(json.dumps(SCHEMA))
        (path / "Note.json").write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


def copied(rows: list[dict[str, Any]], options: str) -> list[str]:
    """Return the rows as PostgreSQL's COPY writes them."""
    values = sql.SQL(", ").join(sql.SQL("({}::json)").format(json.dumps(row)) for row in rows)
    statement = sql.SQL("COPY (VALUES {}) TO STDOUT {}").format(values, sql.SQL(options))  # type: ignore[arg-type]
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        return b"".join(bytes(piece) for piece in copy).decode().splitlines()


def texts(master: Api) -> list[str]:
    results = master.get("/classes/Note", order="objectId").json["results"]
    return [each["text"] for each in results]


def test_texts_with_backslashes_quotes_and_control_characters_arrive_unchanged(
    master: Api, exported: Callable[..., Path], run: Callable[..., str]
) -> None:
    out = run(exported(*(json.dumps(row, ensure_ascii=False) for row in ROWS)))
    assert "Everything at the source is here." in out
    assert texts(master) == TEXTS


@pytest.mark.parametrize("options", ["", "(FORMAT csv)"])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], [table_row("a", text="line1\nline2")]])
def test_files_that_copy_wrote_are_refused_with_the_command_to_use(
    master: Api,
    exported: Callable[..., Path],
    run: Callable[..., str],
    rows: list[dict[str, Any]],
    options: str,
) -> None:
    with pytest.raises(CommandError) as refusal:
        run(exported(*copied(rows, options)))
    assert "Note.json: written by COPY" in str(refusal.value)
    assert """psql -At -o Note.json -c 'SELECT row_to_json(t) FROM "Note" t'""" in str(
        refusal.value
    )
    assert texts(master) == []


@pytest.mark.parametrize("text", ["\\d+", "C:\\Users\\new", "no backslash"])
def test_literal_backslashes_alone_are_not_mistaken_for_those_of_copy(
    master: Api, exported: Callable[..., Path], run: Callable[..., str], text: str
) -> None:
    run(exported(json.dumps(table_row("a", text=text)), ""))
    assert texts(master) == [text]


def test_tables_of_extensions_are_no_classes(
    master: Api, exported: Callable[..., Path], run: Callable[..., str]
) -> None:
    path = exported(json.dumps(ROWS[0]))
    (path / "spatial_ref_sys.json").write_text(json.dumps({"srid": 2000, "auth_name": "EPSG"}))
    out = run(path)
    assert "spatial_ref_sys: not a class of the Parse Server" in out
    assert "Everything at the source is here." in out
