"""What files are called: by clients, in objects and addresses, and in storage."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

from backend.kernel.errors import InvalidFileName
from backend.kernel.json_types import Json
from backend.kernel.randomness import random_bytes
from objects.file_urls import is_directory, is_given_name

MAX_NAME_LENGTH: Final = 128

_MARK_LENGTH: Final = 33  # 32 digits and _
_NOT_IN_KEYS: Final = re.compile(r"[^a-zA-Z0-9@. ~_-]")


def check_name(name: str) -> str:
    """Return the name that a client gave a file, or raise ``InvalidFileName``."""
    if not name:
        raise InvalidFileName("Filename not provided.")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidFileName("Filename too long.")
    if not is_given_name(name):
        raise InvalidFileName("Filename contains invalid characters.")
    return name


def check_directory(directory: Json) -> str:
    """Return the directory that a file is put into, or raise ``InvalidFileName``."""
    if not isinstance(directory, str):
        raise InvalidFileName("Directory must be a string.")
    if not is_directory(directory):
        raise InvalidFileName(
            "Directory is too long or contains invalid characters. It has parts of letters, digits,"
            ' _ and -, with single slashes between them. The first isn\'t "metadata".'
        )
    return directory


def new_stored_name(name: str, directory: str | None = None) -> str:
    """Return an unguessable name by which a new file is stored and addressed."""
    return in_directory(f"{random_bytes(16).hex()}_{check_name(name)}", directory)


def in_directory(stored_name: str, directory: str | None) -> str:
    """Return the name that a stored name becomes in another directory, None for none."""
    name = without_directory(stored_name)
    return name if directory is None else f"{directory}/{name}"


def directory_of(stored_name: str) -> str | None:
    """Return the directory of a stored name, or None."""
    return stored_name.rpartition("/")[0] or None


def without_directory(stored_name: str) -> str:
    """Return the last part of a stored name: 32 digits, ``_`` and what the client called it."""
    return stored_name.rpartition("/")[2]


def given_name(stored_name: str) -> str:
    """Return what the client called a file."""
    return without_directory(stored_name).partition("_")[2]


def storage_key(stored_name: str) -> str:
    """Return where the file is in storage: in one of 256 folders of its directory.

    File systems and object storages don't agree on encoding, length and composition of letters
    beyond ASCII, so digits that depend on the whole name stand in for them.
    """
    name = without_directory(stored_name)
    key = _NOT_IN_KEYS.sub("_", name)
    if key != name:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        key = f"{key[:_MARK_LENGTH]}{digest}_{key[_MARK_LENGTH:]}"
    return f"{stored_name[: -len(name)]}{name[:2]}/{key}"


def extension(name: str) -> str:
    """The extension in lower case without its dot, ``""`` if there is none.

    Dots and blanks at the end don't hide it: some systems drop them. Neither do full-width
    or other compatible forms of letters.
    """
    name = unicodedata.normalize("NFKC", name)
    return name.rstrip(". ").lower().rpartition(".")[2] if "." in name.rstrip(". ") else ""
