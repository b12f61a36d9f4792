"""Log lines of ``script/server`` itself, in the form of the service's (``backend.logs.setup``),
without what that needs. ``LOG_LEVEL`` and ``LOG_FORMAT`` hold for them too."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from backend.kernel.texts.encoding import encode_text
from backend.kernel.texts.redaction import MASK, is_sensitive, mask_text
from backend.logs import records
from backend.logs.readable import render

_LEVELS: Final = ("debug", "info", "warning", "error", "critical")


def error(event: str, **facts: object) -> None:
    """Write a line of level error to standard error."""
    write("error", event, facts=facts)


def info(event: str, **facts: object) -> None:
    """Write a line of level info to standard error."""
    write("info", event, facts=facts)


def write(
    level: str,
    event: str,
    *,
    process: str = "launcher",
    timestamp: str = "",
    facts: dict[str, object] | None = None,
) -> None:
    """Write a line, if ``LOG_LEVEL`` lets it pass. ``timestamp`` is ISO 8601,
    now by default."""
    if _LEVELS.index(level) < _lowest():
        return
    record = {
        **{name: _masked(name, value) for name, value in (facts or {}).items()},
        "event": mask_text(event),
        "process": process,
        "level": level,
        "timestamp": timestamp or _now(),
    }
    if style() == "json":
        line = records.encode(record).decode()
    else:
        line = render(record, colours=sys.stderr.isatty() and "NO_COLOR" not in os.environ)
    # A reader that has gone away doesn't end the service.
    with suppress(OSError):
        # By one call, since the application's processes write there too.
        os.write(sys.stderr.fileno(), encode_text(f"{line}\n"))


def _masked(name: str, value: object) -> object:
    if is_sensitive(name):
        return MASK
    return mask_text(value) if isinstance(value, str) else value


def style() -> str:
    """``json``, or ``console`` where a person reads: as ``LOG_FORMAT`` says."""
    return os.environ.get("LOG_FORMAT") or default_style()


def default_style() -> str:
    """The form of the lines where ``LOG_FORMAT`` isn't set."""
    return "console" if sys.stderr.isatty() else "json"


def _lowest() -> int:
    name = os.environ.get("LOG_LEVEL", "").lower()
    return _LEVELS.index(name) if name in _LEVELS else _LEVELS.index("info")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
