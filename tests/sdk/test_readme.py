"""The README's example for the JavaScript SDK runs as it is pasted."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import KEYS
from tests.other_process import OtherProcess
from tests.sdk.applications import FOLDER

README = Path(__file__).resolve().parents[2] / "README.md"

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db,
    pytest.mark.xdist_group("sdk"),
]


def test_the_example_finds_notes(node: str, other: OtherProcess, tmp_path: Path) -> None:
    [example] = re.findall(r"as `notes\.mjs`:\n\n```js\n(.+?)```", README.read_text(), re.DOTALL)
    assert "http://localhost:8000/api" in example
    (tmp_path / "notes.mjs").write_text(example.replace("http://localhost:8000/api", other.url))
    (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules")
    made = other.do("POST", "/classes/Note", {"text": "hello", "stars": 5})["objectId"]
    done = subprocess.run(
        [node, "notes.mjs"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **KEYS},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{made} hello\n", "")
