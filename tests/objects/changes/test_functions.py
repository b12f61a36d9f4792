"""Functions of the database are those of their file, whatever was installed before."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from objects.changes import capture
from objects.database.functions import DatabaseFunctions

pytestmark = pytest.mark.django_db

FIRST = "CREATE OR REPLACE FUNCTION service_test() RETURNS int LANGUAGE sql AS 'SELECT 1';\n"
SECOND = FIRST.replace("SELECT 1", "SELECT 2")


def result() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT service_test()")
        return int(cursor.fetchone()[0])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "functions.sql"
    path.write_text(FIRST)
    return path


def test_functions_are_installed_once_for_each_version_of_their_file(file: Path) -> None:
    assert DatabaseFunctions(file).outdated() == ["service_test"]
    assert DatabaseFunctions(file).install()
    assert (result(), DatabaseFunctions(file).outdated()) == (1, [])
    assert not DatabaseFunctions(file).install()
    file.write_text(SECOND)
    assert DatabaseFunctions(file).outdated() == ["service_test"]
    assert DatabaseFunctions(file).install()
    assert (result(), DatabaseFunctions(file).outdated()) == (2, [])


def test_functions_from_before_versions_are_replaced(file: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SECOND)
    assert DatabaseFunctions(file).install()
    assert result() == 1


def test_what_captures_changes_is_repaired() -> None:
    with connection.cursor() as cursor:
        cursor.execute("COMMENT ON FUNCTION objects_change_of_row() IS 'version of yesterday'")
        cursor.execute("DROP TRIGGER objects_change ON objects_object")
    assert capture.FUNCTIONS.outdated() == ["objects_change_of_row"]
    assert "objects_object" in capture.not_captured()
    capture.install()
    assert capture.FUNCTIONS.outdated() == capture.not_captured() == []
