"""Files that PostgreSQL's COPY wrote: its formats change the JSON that they hold.

The text format doubles every backslash, so a line break in a text would arrive as the two
characters ``\\n``. The CSV format doubles every quote.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from backend.operations.parse_import.sources.base import SourceFailed

_CSV: Final = b'"{""'
_LONGEST_LINE: Final = 4 * 1024 * 1024
"""Bytes: of a file with a longer line it isn't clear what it is, and it isn't decoded."""
_BACKSLASHES: Final = re.compile(rb"\\+")
_NOT_OF_TABLES: Final = frozenset({"_id", "results"})
"""Keys in the first row of files that other programs wrote."""


def check(path: Path) -> None:
    """Raise ``SourceFailed`` for a file in a format of COPY.

    Reads until a line shows that it isn't one. A correct file is mistaken for one only if all of
    its backslashes are literal, and each is followed by what would make an escape of it.
    """
    try:
        is_copy = _is_copy(path)
    except OSError as error:
        raise SourceFailed(f"{path}: {error.strerror}") from error
    if is_copy:
        raise SourceFailed(
            f"{path}: written by COPY or \\copy, which changes backslashes and quotes, so texts"
            " would arrive changed. Export the table with psql -At -o"
            f" {path.name} -c 'SELECT row_to_json(t) FROM \"{path.stem}\" t', or import from the"
            " database: postgres://user:password@host/database"
        )


def _is_copy(path: Path) -> bool:
    is_first = True
    has_doubled = False
    with path.open("rb") as file:
        while line := file.readline(_LONGEST_LINE):
            if not line.endswith(b"\n") and file.peek(1):
                return False
            if is_first and (text := line.strip()):
                is_first = False
                if text.startswith(_CSV):
                    return True
                row = _parsed(_undoubled(text))
                if not isinstance(row, dict) or row.keys() & _NOT_OF_TABLES:
                    return False
            if b"\\" in line:
                if any(len(run) % 2 for run in _BACKSLASHES.findall(line)):
                    return False
                if _parsed(_undoubled(line)) is None:
                    return False
                has_doubled = True
    return has_doubled


def _undoubled(line: bytes) -> bytes:
    return line.replace(b"\\\\", b"\\")


def _parsed(line: bytes) -> Any:
    """Return the JSON value in a line, or None."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
