"""Encryption of what the database must not show: one key for each purpose, from ``SECRET_KEY``.

``SECRET_KEY_FALLBACKS`` are tried for reading.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


def secret_keys() -> tuple[str, ...]:
    """The secret key, and after it those that it replaced."""
    return (settings.SECRET_KEY, *getattr(settings, "SECRET_KEY_FALLBACKS", ()))


def cipher(purpose: str, also: Sequence[str] = ()) -> MultiFernet:
    """Encrypts under the key for this purpose; decrypts what a former secret key encrypted, too,
    or one of those in ``also``.

    ``decrypt`` raises ``cryptography.fernet.InvalidToken``.
    """
    return MultiFernet([_fernet(key, purpose) for key in (*secret_keys(), *also)])


@lru_cache(maxsize=32)
def _fernet(key: str, purpose: str) -> Fernet:
    derive = HKDF(SHA256(), length=32, salt=None, info=purpose.encode())
    return Fernet(base64.urlsafe_b64encode(derive.derive(key.encode())))
