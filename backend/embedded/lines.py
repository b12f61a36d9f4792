"""Log lines of ``script/server`` itself, in the form of the service's (``backend.logs``), without
what that needs."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime


def error(event: str, **facts: object) -> None:
    """Write a line to standard error."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if style() == "json":
        line = json.dumps(
            {**facts, "event": event, "process": "launcher", "level": "error", "timestamp": now}
        )
    else:
        details = " ".join(f"{name}={value}" for name, value in facts.items())
        line = f"{now} [error    ] {event} {details} process=launcher"
    print(line, file=sys.stderr, flush=True)


def style() -> str:
    """``json``, or ``console`` where a person reads: as ``LOG_FORMAT`` says."""
    return os.environ.get("LOG_FORMAT") or ("console" if sys.stderr.isatty() else "json")
