"""What files are called: by clients, in objects and addresses, and in storage."""

from __future__ import annotations

import re
from typing import Final

from backend.kernel.errors import InvalidFileName
from backend.kernel.randomness import random_bytes

MAX_NAME_LENGTH: Final = 128

# As Parse has it: no slash, no backslash, no dot at the beginning, nothing that isn't ASCII.
_GIVEN = re.compile(r"[_a-zA-Z0-9][a-zA-Z0-9@. ~_-]*")


def check_name(name: str) -> str:
    """Return the name that a client gave a file, or raise ``InvalidFileName``."""
    if not name:
        raise InvalidFileName("Filename not provided.")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidFileName("Filename too long.")
    if not _GIVEN.fullmatch(name):
        raise InvalidFileName("Filename contains invalid characters.")
    return name


def new_stored_name(name: str) -> str:
    """Return an unguessable name by which a new file is stored and addressed."""
    return f"{random_bytes(16).hex()}_{check_name(name)}"


def storage_key(stored_name: str) -> str:
    """Where the file is in storage: in one of 256 folders."""
    return f"{stored_name[:2]}/{stored_name}"


def extension(name: str) -> str:
    """The extension in lower case without its dot, ``""`` if there is none.

    Dots and blanks at the end don't hide it: some systems drop them.
    """
    return name.rstrip(". ").lower().rpartition(".")[2] if "." in name.rstrip(". ") else ""
