"""What an import reports: errors that end it, and what it couldn't import."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from backend.kernel.errors import ServiceError
from objects.service.bulk import NOT_ABOUT_THE_OBJECT


class ImportFailed(Exception):
    """The import can't go on. The text says why."""


Report: TypeAlias = Callable[[str, str], None]
"""Called with the place (``Note/AbC123``) and the reason of what can't be imported."""


def is_accepted(
    action: Callable[[], object], report: Report, place: str, consequence: str = ""
) -> bool:
    """Carry out an action, and report the error by which the service refuses it.

    ``consequence`` is a sentence that follows the error. Raises the errors in
    ``NOT_ABOUT_THE_OBJECT``.
    """
    try:
        action()
    except NOT_ABOUT_THE_OBJECT:
        raise
    except ServiceError as error:
        report(place, f"{sentence(error)} {consequence}" if consequence else str(error))
        return False
    return True


@contextmanager
def problems_file(path: Path, *, empty: bool) -> Iterator[Report]:
    """Append what is reported to a private file, a JSON object a line.

    A line is in the file when the call returns, so it outlives the process. ``empty`` removes what
    earlier runs reported. Raises ``ImportFailed`` if the file can't be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    try:
        number = os.open(path, flags | (os.O_TRUNC if empty else 0), 0o600)
    except OSError as error:
        raise ImportFailed(
            f"{path} can't be written: {error.strerror}. Name a file elsewhere: --state FILE."
        ) from error
    with os.fdopen(number, "a", buffering=1) as file:
        os.fchmod(number, 0o600)

        def report(place: str, reason: str) -> None:
            file.write(json.dumps({"place": place, "reason": reason}) + "\n")

        yield report


def sentence(text: object) -> str:
    """Return a message with a full stop, for another sentence to follow."""
    words = str(text).rstrip()
    return words if words.endswith((".", "!", "?", "…")) else f"{words}."
