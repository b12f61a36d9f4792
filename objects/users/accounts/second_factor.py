"""The second factor: one-time passwords by time (RFC 6238: SHA-1, 30 s, 6 digits).

A right token works once, and so does a recovery code, however many requests use it at once. That
is decided by one statement; if the caller has a transaction open and rolls it back, the token is
unused again. After ten wrong tokens in an hour only recovery codes count, until a right one or the
hour's end.

Secrets are encrypted under a key derived from ``SECRET_KEY`` (``SECRET_KEY_FALLBACKS`` are tried
for reading); recovery codes are kept as hashes and shown once, by ``set_up``.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from cryptography.fernet import InvalidToken
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import get_random_string
from pyotp import HOTP

from backend.kernel.encryption import cipher
from backend.kernel.errors import (
    InternalError,
    InvalidSecondFactor,
    SecondFactorMissing,
    ServiceUnavailable,
)
from backend.kernel.json_types import Json
from objects.users.accounts import short_lived
from objects.users.models import RecoveryCode, SecondFactor

MFA = "mfa"
"""The name of the second factor in ``authData``. No adapter may have it."""
STEP = 30  # seconds
DIGITS = 6
_WINDOW = 1  # steps that a clock may be early or late
_SHORTEST_SECRET, _LONGEST_SECRET = 20, 256  # characters; Parse asks for 20
_RECOVERY_CODES = 2
_RECOVERY_LENGTH = 30
_MOST_GUESSES = 10
_GUESSES_COUNT_FOR = timedelta(hours=1)
PURPOSE: Final = "objects.users.second_factor"  # names the key of stored secrets: never changes
ENABLED: Mapping[str, Json] = {"status": "enabled"}
_DISABLED: Mapping[str, Json] = {"status": "disabled"}


def is_status(data: object) -> bool:
    """Whether this is what ``status`` returns, which clients may send back."""
    return data in (ENABLED, _DISABLED)


def status(user_id: str) -> dict[str, Json]:
    """What the owner may see of it: ``{"status": "enabled"}`` or ``disabled``."""
    return dict(ENABLED if is_set_up(user_id) else _DISABLED)


def is_set_up(user_id: str) -> bool:
    """Whether this user has a second factor."""
    return SecondFactor.objects.filter(user_id=user_id).exists()


def set_up(user_id: str, data: Mapping[str, Json]) -> list[str]:
    """Take ``{"secret", "token"}`` as the user's second factor; its recovery codes.

    A user who has one already proves it by ``old``: a token or a recovery code of the former.
    """
    encoded, token = data.get("secret"), data.get("token")
    secret = _secret(encoded)
    step = _step_of(secret, _text(token), after=0)
    if step is None:
        raise InvalidSecondFactor()
    codes = [get_random_string(_RECOVERY_LENGTH) for _ in range(_RECOVERY_CODES)]
    columns = {"secret": _encrypt(secret), "last_step": step, "created_at": timezone.now()}
    with transaction.atomic():
        _, created = SecondFactor.objects.get_or_create(user_id=user_id, defaults=columns)
        if not created:
            if data.get("old") is None:
                raise InvalidSecondFactor("MFA is already set up on this account")
            check(user_id, data["old"])
            SecondFactor.objects.filter(user_id=user_id).update(**columns)
        RecoveryCode.objects.filter(user_id=user_id).delete()
        RecoveryCode.objects.bulk_create(
            RecoveryCode(user_id=user_id, code_hash=_hash(code)) for code in codes
        )
    return codes


def transfer(user_id: str, data: Mapping[str, Json]) -> None:
    """Store the second factor that a user has had elsewhere: ``{"secret", "recovery": […]}``.

    Raises ``InvalidSecondFactor`` for a secret that no token can be computed from.
    """
    codes = data.get("recovery")
    with transaction.atomic():
        remove(user_id)
        SecondFactor.objects.create(
            user_id=user_id, secret=_encrypt(_secret(data.get("secret"))), created_at=timezone.now()
        )
        RecoveryCode.objects.bulk_create(
            RecoveryCode(user_id=user_id, code_hash=_hash(code))
            for code in (codes if isinstance(codes, list) else [])
            if isinstance(code, str) and len(code) == _RECOVERY_LENGTH
        )


def check(user_id: str, token: Json) -> None:
    """Use a token or a recovery code; an error if it isn't the user's, or was used before."""
    if token is None:
        raise SecondFactorMissing()
    text = _text(token)
    if len(text) == _RECOVERY_LENGTH:
        used, _ = RecoveryCode.objects.filter(user_id=user_id, code_hash=_hash(text)).delete()
    else:
        # Counted beforehand, so that guesses at once don't all see the same number.
        if short_lived.count(_guesses(user_id), _GUESSES_COUNT_FOR) > _MOST_GUESSES:
            raise InvalidSecondFactor(
                "Too many wrong MFA tokens. Use a recovery code or try later."
            )
        used = _use_step(user_id, text)
    if not used:
        raise InvalidSecondFactor()
    # A recovery code counts without Redis too; wrong tokens go on being counted then.
    with contextlib.suppress(ServiceUnavailable):
        short_lived.forget(_guesses(user_id))


def remove(user_id: str) -> None:
    """Take the second factor and its recovery codes away."""
    with transaction.atomic():
        SecondFactor.objects.filter(user_id=user_id).delete()
        RecoveryCode.objects.filter(user_id=user_id).delete()


def _guesses(user_id: str) -> str:
    return f"guesses:{user_id}"


def _use_step(user_id: str, token: str) -> int:
    factor = SecondFactor.objects.filter(user_id=user_id).first()
    if factor is None:
        return 0
    step = _step_of(_decrypt(factor.secret), token, after=factor.last_step)
    if step is None:
        return 0
    # Of several requests with this token, the first moves last_step; the others find it moved.
    # The secret is compared because a token of the former one must not count for a new one.
    return SecondFactor.objects.filter(
        user_id=user_id, secret=factor.secret, last_step__lt=step
    ).update(last_step=step)


def _step_of(secret: bytes, token: str, *, after: int) -> int | None:
    """The step that this is the token of, near now and after the one that was used last."""
    now = int(time.time()) // STEP
    step_found = None
    for step in range(now - _WINDOW, now + _WINDOW + 1):
        if hmac.compare_digest(one_time_password(secret, step).encode(), token.encode()):
            step_found = step if step_found is None and step > after else step_found
    return step_found


def one_time_password(secret: bytes, step: int) -> str:
    """Return the token of a step (RFC 4226)."""
    return HOTP(base64.b32encode(secret).decode(), digits=DIGITS).at(step)


def _text(token: Json) -> str:
    if not isinstance(token, str) or not token.isascii() or len(token) > _RECOVERY_LENGTH:
        raise InvalidSecondFactor()
    return token


def _secret(encoded: Json) -> bytes:
    if not isinstance(encoded, str):
        raise InvalidSecondFactor("Invalid MFA data")
    bare = encoded.replace(" ", "").rstrip("=").upper()
    if not _SHORTEST_SECRET <= len(bare) <= _LONGEST_SECRET:
        raise InvalidSecondFactor("Invalid MFA data")
    try:
        return base64.b32decode(bare + "=" * (-len(bare) % 8))
    except (binascii.Error, ValueError):
        raise InvalidSecondFactor("Invalid MFA data") from None


def _hash(code: str) -> bytes:
    # 178 random bits need no slow hash.
    return hashlib.sha256(code.encode()).digest()


def _encrypt(secret: bytes) -> str:
    return cipher(PURPOSE).encrypt(secret).decode()


def _decrypt(encrypted: str) -> bytes:
    try:
        return cipher(PURPOSE).decrypt(encrypted)
    except InvalidToken:
        # SECRET_KEY is another than when the factor was set up. Recovery codes still work.
        raise InternalError("The second factor can't be read.") from None
