"""Log lines of ``script/server`` itself, in the form of the service's (``backend.logs``), without
what that needs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime


def error(event: str, **facts: object) -> None:
    """Write a line of this level to standard error."""
    _write("error", event, facts)


def info(event: str, **facts: object) -> None:
    """Write a line of this level to standard error."""
    _write("info", event, facts)


def _write(level: str, event: str, facts: Mapping[str, object]) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if style() == "json":
        line = json.dumps(
            {**facts, "event": event, "process": "launcher", "level": level, "timestamp": now}
        )
    else:
        details = " ".join(f"{name}={value}" for name, value in facts.items())
        line = f"{now} [{level:<9}] {event} {details} process=launcher"
    print(line, file=sys.stderr, flush=True)


def style() -> str:
    """``json``, or ``console`` where a person reads: as ``LOG_FORMAT`` says."""
    return os.environ.get("LOG_FORMAT") or ("console" if sys.stderr.isatty() else "json")
