"""A backup of ``script/server`` is restored into what ``compose.yaml`` sets up, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from backend.instance.folder import temporary_folder
from tests.backend.deploy.layouts import KEYS, composed
from tests.backend.operations.service import PATIENCE, Service, run_manage


@pytest.mark.slow
def test_a_backup_is_restored_into_containers_and_back(
    tmp_path: Path,
) -> None:
    laptop, container = tmp_path / "laptop.tar", tmp_path / "container.tar"
    exported = tmp_path / "exported.jsonl"
    path = "/api/classes/Note"
    with started() as first:
        headers = {
            "X-Svc-Application-Id": first.printed(r"X-Svc-Application-Id: ([\w-]+)"),
            "X-Svc-Master-Key": first.printed(r"X-Svc-Master-Key: ([\w-]+)"),
        }
        made = httpx.post(f"{first.url}{path}", headers=headers, json={"n": 1}, timeout=PATIENCE)
        name = made.json()["objectId"]
        manage("backup", laptop, DATA_DIR=first.data)

    value = KEYS | {"POSTGRES_PASSWORD": "p@ss/w:rd%", "REDIS_PASSWORD": 'r@"/\\'}
    with composed(value) as environment:
        settings = environment | {"DATA_DIR": str(tmp_path / "data")}
        manage("prepare", **settings)
        manage("restore", laptop, "--overwrite", "--without-keys", **settings)
        manage("export_objects", "Note", exported, **settings)
        assert name in exported.read_text()
        manage("backup", container, **settings)

    with started() as second:
        manage("restore", container, "--overwrite", DATA_DIR=second.data)
        assert second.stop() == 0
        again = Service(second.data)
        headers = {"X-Svc-Application-Id": KEYS["APP_ID"], "X-Svc-Master-Key": KEYS["MASTER_KEY"]}
        assert again.get(f"{path}/{name}", headers).json()["n"] == 1
        assert again.stop() == 0


@contextmanager
def started() -> Iterator[Service]:
    with temporary_folder() as folder:
        service = Service(folder.path)
        try:
            yield service
        finally:
            service.stop()


def manage(*arguments: object, **settings: object) -> None:
    done = run_manage(*map(str, arguments), **settings)
    assert done.returncode == 0, done.stderr
