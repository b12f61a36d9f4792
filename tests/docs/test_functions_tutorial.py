"""docs/tutorial-functions.md and docs/functions.md: what they show works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from functions.runtime.registry import registry
from tests.conftest import KEYS
from tests.other_process import other_process
from tests.people import sign_up
from tests.rest import MASTER, Api

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIAL = (DOCS / "tutorial-functions.md").read_text()
REFERENCE = (DOCS / "functions.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.+?)```", text, re.DOTALL)


@pytest.mark.slow
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


@pytest.mark.slow
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


def example_with(text: str) -> dict[str, Any]:
    """Register the example of the reference that contains the text."""
    (code,) = (code for code in blocks(REFERENCE, "python") if text in code)
    module: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "example", "exec"), module)
    return module


@pytest.fixture
def master(db: None) -> Iterator[Api]:
    with registry.temporarily():
        yield Api(MASTER)


def test_the_examples_for_files_and_parameters_reject_what_they_check(master: Api) -> None:
    example_with("@before_save(FILE)")
    for size, status in ((1_000_000, 201), (1_000_001, 400)):
        reply = master.call("POST", "/files/a.txt", raw=b"a" * size, content_type="text/plain")
        assert reply.status == status
    assert master.put("/config", {"params": {"maxPlayers": 0}}).error == (400, 141)
    assert master.put("/config", {"params": {"maxPlayers": 2}}).status == 200


def test_the_examples_work_with_the_classes_that_the_commands_create(master: Api) -> None:
    for command in re.findall(r"(?m)^script/manage (create_class .+)$", REFERENCE):
        call_command(*shlex.split(command))
    example_with("def join(")
    example_with("def pay(")
    ann = sign_up("ann")
    team = master.make("Team", open=True, size=1)
    assert ann.post("/functions/join", {"team": team}).json == {"result": 2}
    owner = {"__type": "Pointer", "className": "_User", "objectId": ann.user_id}
    mine = master.make("Account", owner=owner, balance=5)
    other = master.make("Account", balance=0)
    assert ann.post("/functions/pay", {"to": other, "amount": 2}).status == 200
    balances = [
        master.get(f"/classes/Account/{account}").json["balance"] for account in (mine, other)
    ]
    assert balances == [3, 2]
