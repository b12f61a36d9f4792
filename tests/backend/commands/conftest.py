"""Commands as a person runs them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.backend.commands.instances import FIRST_KEYS, Instance, new_database
from tests.callers import *  # noqa: F403


@dataclass
class Told:
    """What a command has written."""

    out: str
    err: str


def run(*args: str) -> Told:
    out, err = io.StringIO(), io.StringIO()
    call_command(*args, stdout=out, stderr=err)
    return Told(out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database as ``manage.py prepare`` leaves it, for others to be made like."""
    with new_database("prepared") as url:
        instance = Instance(tmp_path_factory.mktemp("prepared"), url)
        instance.has_keys(FIRST_KEYS)
        instance.do("prepare")
        yield url


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write a file: text as it is, a list as NDJSON or, by the file's name, as a JSON array."""

    def write_file(name: str, content: Any) -> Path:
        path = tmp_path / name
        if isinstance(content, str):
            path.write_text(content)
        elif name.endswith(".ndjson"):
            path.write_text("".join(f"{json.dumps(row)}\n" for row in content))
        else:
            path.write_text(json.dumps(content, indent=1))
        return path

    return write_file
