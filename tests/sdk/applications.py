"""Applications on the JavaScript SDK, which run to their end beside a test."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
KEYS = ("test-app", "test-javascript-key", "test-master-key")


def outcomes_of(node: str, source: str, *arguments: str) -> list[tuple[str, Any]]:
    """What each check of the application came to: an error, or None."""
    done = subprocess.run(
        [node, source, *arguments],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [(line["name"], line["error"]) for line in lines]
