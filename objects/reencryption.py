"""Encrypt stored secrets again after ``SECRET_KEY`` has changed.

An app registers its encrypted columns with ``encrypted_column``, in its wiring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.fernet import InvalidToken, MultiFernet
from django.db import models

from backend.kernel.encryption import cipher

_PAGE = 500


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A text column that is encrypted for one purpose (see ``backend.kernel.encryption``)."""

    model: type[models.Model]
    field: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Reencrypted:
    """How many secrets are under the present key now, and how many no key could read."""

    done: int
    unreadable: int


_columns: list[EncryptedColumn] = []


def encrypted_column(model: type[models.Model], field: str, purpose: str) -> None:
    """Register a column to be encrypted again with the others."""
    column = EncryptedColumn(model, field, purpose)
    if column not in _columns:
        _columns.append(column)


def reencrypt_all(former: Sequence[str] = ()) -> Reencrypted:
    """Bring every stored secret under ``SECRET_KEY``.

    What is read: what ``SECRET_KEY``, ``SECRET_KEY_FALLBACKS`` or one of the keys in ``former``
    encrypted; the rest is left as it is. It may be repeated, and run while requests write.
    """
    done = unreadable = 0
    for column in _columns:
        result = _reencrypt(column, cipher(column.purpose, tuple(former)))
        done += result.done
        unreadable += result.unreadable
    return Reencrypted(done, unreadable)


def unreadable() -> int:
    """How many stored secrets neither ``SECRET_KEY`` nor ``SECRET_KEY_FALLBACKS`` can read."""
    return sum(
        not _is_readable(cipher(column.purpose), secret)
        for column in _columns
        for secret in column.model._default_manager.values_list(column.field, flat=True).iterator()
        if secret is not None
    )


def _is_readable(box: MultiFernet, secret: str) -> bool:
    try:
        box.decrypt(secret)
    except InvalidToken:
        return False
    return True


def _reencrypt(column: EncryptedColumn, box: MultiFernet) -> Reencrypted:
    rows = column.model._default_manager.exclude(**{column.field: None})
    done = unreadable = 0
    last = None
    while True:
        page = rows if last is None else rows.filter(pk__gt=last)
        stored = [*page.order_by("pk").values_list("pk", column.field)[:_PAGE]]
        for key, secret in stored:
            try:
                fresh = box.rotate(secret).decode()
            except InvalidToken:
                unreadable += 1
                continue
            # A value that was stored meanwhile is encrypted with the present key.
            rows.filter(pk=key, **{column.field: secret}).update(**{column.field: fresh})
            done += 1
        if len(stored) < _PAGE:
            return Reencrypted(done, unreadable)
        last = stored[-1][0]
