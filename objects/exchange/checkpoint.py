"""The checkpoint of an import: a small file from which the import resumes after any stop.

The file is written after every batch that is stored. Imports into this instance's database have the
counts there as well, committed with each batch (``progress``): after a crash between the two, these
hold. Object ids are made from a secret of the checkpoint and the number of the row, so rows
that come again although they were stored (of a class whose objects are stored one by one) are
recognised.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import string
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from objects.core.names import OBJECT_ID_LENGTH
from objects.exchange.problems import UnusableFile

_ALPHABET = string.ascii_letters + string.digits
_PAIRS = [first + second for second in _ALPHABET for first in _ALPHABET]
_IDS = len(_ALPHABET) ** OBJECT_ID_LENGTH
_HEAD = 1 << 16


@dataclass
class Checkpoint:
    """``rows`` of the file are done with: stored, or reported and left out. One that
    ``is_finished`` stays, so that resuming the import again stores nothing twice."""

    class_name: str
    file: str
    secret: str = field(default_factory=lambda: secrets.token_hex(32))
    rows: int = 0
    stored: int = 0
    refused: int = 0
    kinds: dict[str, str] = field(default_factory=dict)
    is_finished: bool = False

    @property
    def key(self) -> str:
        """The identifier of this import. The secret can't be derived from it."""
        return hmac.digest(self._secret, b"key", "sha256").hex()

    def object_id(self, row: int) -> str:
        """Return the object id of a row: deterministic, and not guessable without the secret."""
        digest = hmac.digest(self._secret, str(row).encode(), "sha256")
        number = int.from_bytes(digest, "big") % _IDS
        pairs = []
        for _ in range(OBJECT_ID_LENGTH // 2):
            number, pair = divmod(number, len(_PAIRS))
            pairs.append(_PAIRS[pair])
        return "".join(pairs)

    @cached_property
    def _secret(self) -> bytes:
        return bytes.fromhex(self.secret)

    def save(self, path: Path) -> None:
        """Replace the file in one step."""
        fresh = path.with_name(f"{path.name}.new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(self), file)
        fresh.replace(path)


def load(path: Path, class_name: str, file: str) -> Checkpoint | None:
    """Read a checkpoint; refuse that of another file or class. Return None if there is none, or
    that of another import, which is finished."""
    if not path.exists():
        return None
    try:
        checkpoint = Checkpoint(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise UnusableFile(f"{path} is no checkpoint of an import: {error}") from error
    if checkpoint.is_finished and (checkpoint.class_name, checkpoint.file) != (class_name, file):
        return None
    if checkpoint.class_name != class_name:
        raise UnusableFile(f"{path} belongs to an import into {checkpoint.class_name}")
    if checkpoint.file != file:
        raise UnusableFile(f"the file has changed since the import that {path} belongs to")
    return checkpoint


def identity(path: Path) -> str:
    """Return a fingerprint of a file, which changes with its content."""
    with path.open("rb") as file:
        head = hashlib.sha256(file.read(_HEAD)).hexdigest()
    return f"{path.stat().st_size}-{head}"
