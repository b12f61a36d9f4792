"""docs/tutorial-functions.md and docs/functions.md: what they show works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import KEYS
from tests.other_process import other_process

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIAL = (DOCS / "tutorial-functions.md").read_text()
REFERENCE = (DOCS / "functions.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.+?)```", text, re.DOTALL)


@pytest.mark.usefixtures("emptied")
@pytest.mark.django_db
def test_the_tutorial_ends_as_it_says(tmp_path: Path) -> None:
    (code,) = blocks(TUTORIAL, "python")
    (tmp_path / "cloud.py").write_text(code)
    (tmp_path / ".data").mkdir()
    lines = [f"{name}={value}\n" for name, value in KEYS.items()]
    (tmp_path / ".data" / "keys.env").write_text("".join(lines))
    commands = blocks(TUTORIAL, "sh")[-1]
    with other_process(CLOUD_MODULES="cloud", PYTHONPATH=str(tmp_path)) as process:
        done = subprocess.run(
            ["bash", "-eu", "-c", commands.replace("http://localhost:8000/api", process.url)],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines() if line]
    document = [json.loads(line) for line in re.findall(r"^# (\{.+\})$", commands, re.MULTILINE)]
    assert len(answers) == len(document) == 4
    assert answers[0].keys() == document[0].keys()
    assert answers[0]["amount"] == document[0]["amount"]
    assert answers[1:] == document[1:]


def test_the_examples_of_the_reference_can_be_registered(tmp_path: Path) -> None:
    names = []
    for number, code in enumerate(blocks(REFERENCE, "python")):
        names.append(f"example_{number}")
        (tmp_path / f"example_{number}.py").write_text(code)
    assert len(names) >= 4
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "backend.settings.django",
        "CLOUD_MODULES": ",".join(names),
        "PYTHONPATH": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
