"""``script/console`` works on the objects of a running instance."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backend.operations.service import PATIENCE, ROOT, Service, plain_environment

CODE = """
created = service.create(MASTER, "Note", {"text": "from the console", "stars": 5})
notes = Query(MASTER, "Note").where(stars__gt=3).find()
print([note["text"] for note in notes], created.object_id == notes[0].id)
print(sorted(registry.find("Note").schema.fields))
print(service_settings.APP_ID, Principal is type(CLIENT), callable(wire_object))
print(classes.__name__)
"""


def console(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", ROOT / "script" / "console", *arguments],
        env=plain_environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.slow
def test_the_console_reads_and_writes_what_the_instance_serves(start: Callable[..., Service]):
    service = start()
    app_id = service.printed(r"X-Svc-Application-Id: ([\w-]+)")
    done = console("-c", CODE, DATA_DIR=service.data)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['from the console'] True",
        "['stars', 'text']",
        f"{app_id} True True",
        "objects.service.classes",
    ]


@pytest.mark.slow
def test_without_an_instance_the_console_says_what_to_start(tmp_path: Path):
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "key")
    done = console("-c", "print(1)", DATA_DIR=tmp_path, **keys)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"The service isn't running: start script/server with DATA_DIR={tmp_path}, "
        "or set DATABASE_URL to use another PostgreSQL.\n"
    )
