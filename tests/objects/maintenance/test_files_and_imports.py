"""Writes that are more than a statement: a file being stored, an import under way."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connections

from objects.database import maintenance
from objects.files.models import StoredFile
from tests.backend.commands.conftest import run
from tests.objects.maintenance.slow_storage import PATIENCE, SlowStorage
from tests.rest import MASTER, Api, Reply


@pytest.fixture
def held_up(settings: Any, tmp_path: Path, transactional_db: None) -> Iterator[Path]:
    """Files are stored slowly; the folder."""
    chosen = copy.deepcopy(settings.STORAGES)
    chosen["files"] = {
        "BACKEND": "tests.objects.maintenance.slow_storage.SlowStorage",
        "OPTIONS": {"location": tmp_path / "files"},
    }
    settings.STORAGES = chosen
    SlowStorage.began.clear()
    SlowStorage.go_on.clear()
    SlowStorage.held.set()
    yield tmp_path / "files"
    SlowStorage.held.clear()
    SlowStorage.go_on.set()
    maintenance.off()


def upload() -> Reply:
    return Api(MASTER).call("POST", "/files/a.txt", raw=b"text", content_type="text/plain")


class InThread(threading.Thread):
    """An action with a database connection of its own."""

    def __init__(self, action: Any) -> None:
        super().__init__(daemon=True)
        self._action = action
        self.result: Any = None

    def run(self) -> None:
        try:
            self.result = self._action()
        except Exception as error:
            self.result = error
        finally:
            connections.close_all()


def test_on_waits_until_a_file_that_is_being_stored_is_whole(held_up):
    uploading = InThread(upload)
    uploading.start()
    assert SlowStorage.began.wait(PATIENCE)
    with pytest.raises(maintenance.WritersLeft):
        maintenance.on(limit=0)
    SlowStorage.go_on.set()
    maintenance.on()
    stored = [path for path in held_up.rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in stored] == [b"text"]
    uploading.join(PATIENCE)
    assert uploading.result.status == 201
    assert StoredFile.objects.count() == 1
    assert upload().error == (400, 119)
    assert StoredFile.objects.count() == 1


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.ndjson"
    path.write_text("".join(f"{json.dumps({'n': n})}\n" for n in range(10)))
    return path


@pytest.mark.django_db
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_an_import_ends_and_can_go_on_afterwards(rows, master, on_error):
    maintenance.on()
    arguments = ("import_objects", "Thing", str(rows), "--on-error", on_error)
    with pytest.raises(CommandError, match=r"read-only mode .*--resume goes on"):
        run(*arguments)
    maintenance.off()
    output = run(*arguments, "--resume").out
    assert output == "Thing: 10 objects stored, 0 rows left out\n"
    assert [result["n"] for result in master.results("Thing", order="n")] == [*range(10)]


@pytest.mark.django_db
def test_an_operator_may_import_during_maintenance(rows, master):
    maintenance.on(pause_chain=True)
    run("import_objects", "Thing", str(rows), "--during-maintenance")
    assert len(master.results("Thing")) == 10
    assert master.post("/classes/Thing", {"n": 11}).error == (400, 119)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_an_import_over_rest_ends_too(rows, other, on_error):
    run("maintenance", "on")
    try:
        arguments = ("import_objects", "Thing", str(rows), "--on-error", on_error)
        with pytest.raises(CommandError):
            run(*arguments, "--rest", other.url)
    finally:
        run("maintenance", "off")
    output = run(*arguments, "--rest", other.url, "--resume").out
    assert output == "Thing: 10 objects stored, 0 rows left out\n"
