"""Applications on SDKs, which run to their end beside a test."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
KEYS = ("test-app", "test-javascript-key", "test-master-key")


def outcomes_of(
    program: str, source: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> list[tuple[str, Any]]:
    """Run an application; return what each of its checks came to: an error, or None.

    ``environment`` are further variables.
    """
    done = subprocess.run(
        [program, source, *arguments],
        cwd=FOLDER,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [(line["name"], line["error"]) for line in lines]
