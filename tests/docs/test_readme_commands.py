"""The commands of README.md do what it says, pasted into a shell one after the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import KEYS

TEXT = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def commands(heading: str) -> str:
    """The shell commands below a heading."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"```sh\n(.+?)```", section, re.DOTALL))


def paste(script: str, url: str, folder: Path) -> list[dict[str, object]]:
    """What the commands print: one JSON object each."""
    (folder / ".data").mkdir()
    lines = [f"{name}={value}\n" for name, value in KEYS.items()]
    (folder / ".data" / "keys.env").write_text("".join(lines))
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-eu", "-c", script.replace("http://localhost:8000/api", url)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines() if line]


@pytest.mark.django_db
@pytest.mark.xdist_group("web")
def test_the_api_document_is_fetched(other, tmp_path):
    assert paste(commands("The API document"), other.url, tmp_path) == []
    assert json.loads((tmp_path / "openapi.json").read_text())["openapi"] == "3.1.0"


@pytest.mark.usefixtures("emptied")
@pytest.mark.django_db
@pytest.mark.xdist_group("web")
def test_users_sign_up_log_in_and_out(other, tmp_path):
    other.call("DELETE", "/purge/_User")
    signed_up, me, changed, results, logged_out, ended = paste(
        commands("Users"), other.url, tmp_path
    )
    try:
        assert set(signed_up) == {"objectId", "createdAt", "sessionToken"}
        assert me["username"] == "ann"
        assert set(changed) == {"updatedAt"}
        assert [user["objectId"] for user in results["results"]] == [signed_up["objectId"]]
        assert logged_out == {}
        assert ended == {"code": 209, "error": "Invalid session token"}
    finally:
        other.call("DELETE", "/purge/_User")
        other.call("DELETE", "/purge/_Session")
