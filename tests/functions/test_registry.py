"""Registering functions, triggers and jobs, and finding the modules that do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from functions import Request, before_save, function, job
from functions.runtime.registry import AlreadyRegistered, registry


def test_two_functions_of_one_name_are_a_mistake_that_names_both() -> None:
    @function("twice")
    def first(request: Request) -> None: ...

    with pytest.raises(AlreadyRegistered) as caught:

        @function("twice")
        def second(request: Request) -> None:
            return None

    text = str(caught.value)
    assert "'twice'" in text
    assert "first:" in text
    assert "second:" in text


def test_two_triggers_of_one_event_and_two_jobs_of_one_name_are_mistakes() -> None:
    @before_save("Project")
    def one(request: Any) -> None: ...

    with pytest.raises(AlreadyRegistered, match="before_save of 'Project'"):

        @before_save("Project")
        def other(request: Any) -> None:
            return None

    @job("clean")
    def clean(request: Any) -> None: ...

    with pytest.raises(AlreadyRegistered, match="job 'clean'"):

        @job("clean")
        def clean_again(request: Any) -> None:
            return None


def test_names_are_those_of_the_functions_unless_others_are_given() -> None:
    @function()
    def by_itself(request: Request) -> None:
        """What it does."""

    assert registry.functions["by_itself"].description == "What it does."


@pytest.mark.parametrize("name", ["", "a/b", "1a", "a b", "ä", "x" * 200, "a?b"])
def test_names_that_no_path_can_have_are_mistakes(name: str) -> None:
    with pytest.raises(ValueError, match="is no name"):

        @function(name or "-")
        def body(request: Request) -> None: ...


def test_async_functions_are_mistakes() -> None:
    with pytest.raises(TypeError, match="is async"):

        @function()
        async def later(request: Request) -> None: ...


_START = """
import django
django.setup()
from functions.runtime.registry import registry
print(sorted(registry.functions))
"""


def start(folder: Path, modules: str) -> subprocess.CompletedProcess[str]:
    """A process of the service with these cloud modules."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "backend.settings.django",
        "CLOUD_MODULES": modules,
        "PYTHONPATH": str(folder),
    }
    return subprocess.run(
        [sys.executable, "-c", _START],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


_MODULE = """
from functions import Request, function

@function()
def from_a_module(request: Request) -> int:
    return 1
"""


@pytest.mark.slow
def test_modules_that_the_deployment_names_are_imported(tmp_path: Path) -> None:
    (tmp_path / "my_cloud.py").write_text(_MODULE)
    done = start(tmp_path, "my_cloud")
    assert done.returncode == 0, done.stderr
    assert "from_a_module" in done.stdout


@pytest.mark.slow
def test_a_module_that_is_not_there_stops_the_start_and_is_named(tmp_path: Path) -> None:
    done = start(tmp_path, "nowhere.cloud")
    assert done.returncode != 0
    assert "CLOUD_MODULES names nowhere.cloud, and there is no such module." in done.stderr


@pytest.mark.slow
def test_a_mistake_inside_of_a_module_is_shown_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "my_cloud.py").write_text("import not_installed\n")
    done = start(tmp_path, "my_cloud")
    assert done.returncode != 0
    assert done.stderr.splitlines() == [
        f"CLOUD_MODULES: my_cloud can't be loaded. {tmp_path}/my_cloud.py, line 1:"
        " ModuleNotFoundError: No module named 'not_installed'"
    ]


@pytest.mark.slow
def test_an_error_in_user_code_shows_the_frames_of_user_code_alone(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("import json\n\ndef read(text):\n    json.loads(text)\n")
    (tmp_path / "my_cloud.py").write_text("from helpers import read\n\nread('no JSON')\n")
    done = start(tmp_path, "my_cloud")
    assert done.returncode == 1
    assert f"{tmp_path}/helpers.py, line 4: JSONDecodeError" in done.stderr.splitlines()[-1]
    frames = [line.strip() for line in done.stderr.splitlines() if line.startswith("  File")]
    assert frames == [
        f'File "{tmp_path}/my_cloud.py", line 3, in <module>',
        f'File "{tmp_path}/helpers.py", line 4, in read',
    ]


@pytest.mark.slow
def test_the_whole_traceback_is_shown_when_debugging_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("START_DEBUG", "on")
    (tmp_path / "my_cloud.py").write_text("import json\n\njson.loads('no JSON')\n")
    assert "json/decoder.py" in start(tmp_path, "my_cloud").stderr
    assert "Traceback" in start(tmp_path, "nope").stderr


@pytest.mark.slow
def test_an_error_of_syntax_is_shown_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "my_cloud.py").write_text("x = 1\ndef f(:\n")
    done = start(tmp_path, "my_cloud")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"{tmp_path}/my_cloud.py, line 2: SyntaxError" in line


@pytest.mark.slow
def test_two_modules_with_one_name_stop_the_start_and_are_named(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(_MODULE)
    (tmp_path / "two.py").write_text(_MODULE.replace("return 1", "return 2"))
    done = start(tmp_path, "one,two")
    assert done.returncode != 0
    assert "one.from_a_module" in done.stderr
    assert "two.from_a_module" in done.stderr


_NEVER_CALLED = """
from functions import after_save

@after_save("ContractEvent")
def note(request): ...
"""


@pytest.mark.slow
def test_a_trigger_that_nothing_calls_stops_the_start_and_says_what_works(tmp_path: Path) -> None:
    (tmp_path / "never_called.py").write_text(_NEVER_CALLED)
    done = start(tmp_path, "never_called")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"{tmp_path}/never_called.py, line 4: ContractEvent has no triggers" in line
    assert "ContractEvent has no triggers around saving and deleting" in done.stderr
    assert "Use the event channel (/ws), a live query, or the table chain_outbox" in done.stderr
