"""Commands as a person runs them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

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
