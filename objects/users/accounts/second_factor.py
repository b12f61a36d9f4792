"""The second factor: one-time passwords by time (RFC 6238: SHA-1, 30 s, 6 digits).

``SecondFactors`` are those of one kind of accounts: of users, which this module's functions are
about, and of staff (``objects.staff``).

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

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
_RECOVERY_LENGTH = 30
_MOST_GUESSES = 10
_GUESSES_COUNT_FOR = timedelta(hours=1)
PURPOSE: Final = "objects.users.second_factor"  # names the key of stored secrets: never changes
ENABLED: Mapping[str, Json] = {"status": "enabled"}
_DISABLED: Mapping[str, Json] = {"status": "disabled"}


def is_status(data: object) -> bool:
    """Whether this is what ``status`` returns, which clients may send back."""
    return data in (ENABLED, _DISABLED)


@dataclass(frozen=True, slots=True)
class SecondFactors:
    """The second factors of one kind of accounts, and their recovery codes.

    ``factors`` is a model with ``SecondFactorColumns``, ``codes`` one with ``code_hash``; both have
    an account's ``user_id``. ``number_of_codes`` is how many recovery codes an account gets,
    ``name`` what counts of wrong tokens are called.
    """

    factors: type[Any]
    codes: type[Any]
    number_of_codes: int
    name: str

    def is_set_up(self, user_id: str) -> bool:
        """Whether this account has a second factor."""
        return bool(self.factors.objects.filter(user_id=user_id).exists())

    def set_up(
        self, user_id: str, data: Mapping[str, Json], *, is_proven: bool = False
    ) -> list[str]:
        """Take ``{"secret", "token"}`` as the account's second factor; its recovery codes.

        An account that has one already proves it by ``old``, a token or a recovery code of the
        former, unless it ``is_proven``.
        """
        encoded, token = data.get("secret"), data.get("token")
        secret = _secret(encoded)
        step = _step_of(secret, _text(token), after=0)
        if step is None:
            raise InvalidSecondFactor()
        columns = {"secret": _encrypt(secret), "last_step": step, "created_at": timezone.now()}
        with transaction.atomic():
            _, created = self.factors.objects.get_or_create(user_id=user_id, defaults=columns)
            if not created:
                if not is_proven:
                    if data.get("old") is None:
                        raise InvalidSecondFactor("MFA is already set up on this account")
                    self.check(user_id, data["old"])
                self.factors.objects.filter(user_id=user_id).update(**columns)
            return self.renew_codes(user_id)

    def renew_codes(self, user_id: str) -> list[str]:
        """Replace the account's recovery codes, and return the new ones."""
        codes = [get_random_string(_RECOVERY_LENGTH) for _ in range(self.number_of_codes)]
        self._store_codes(user_id, codes)
        return codes

    def transfer(self, user_id: str, data: Mapping[str, Json]) -> None:
        """Store the second factor that an account has had elsewhere:
        ``{"secret", "recovery": […]}``.

        Raises ``InvalidSecondFactor`` for a secret that no token can be computed from.
        """
        codes = data.get("recovery")
        secret = _encrypt(_secret(data.get("secret")))
        with transaction.atomic():
            self.remove(user_id)
            self.factors.objects.create(user_id=user_id, secret=secret, created_at=timezone.now())
            self._store_codes(
                user_id,
                [
                    code
                    for code in (codes if isinstance(codes, list) else [])
                    if isinstance(code, str) and len(code) == _RECOVERY_LENGTH
                ],
            )

    def check(self, user_id: str, token: Json) -> None:
        """Use a token or a recovery code; an error if it isn't the account's, or is used."""
        if token is None:
            raise SecondFactorMissing()
        text = _text(token)
        if len(text) == _RECOVERY_LENGTH:
            used, _ = self.codes.objects.filter(user_id=user_id, code_hash=_hash(text)).delete()
        else:
            # Counted beforehand, so that guesses at once don't all see the same number.
            if short_lived.count(self._guesses(user_id), _GUESSES_COUNT_FOR) > _MOST_GUESSES:
                raise InvalidSecondFactor(
                    "Too many wrong MFA tokens. Use a recovery code or try later."
                )
            used = self._use_step(user_id, text)
        if not used:
            raise InvalidSecondFactor()
        # A recovery code counts without Redis too; wrong tokens go on being counted then.
        with contextlib.suppress(ServiceUnavailable):
            short_lived.forget(self._guesses(user_id))

    def remove(self, user_id: str) -> None:
        """Take the second factor and its recovery codes away."""
        with transaction.atomic():
            self.factors.objects.filter(user_id=user_id).delete()
            self.codes.objects.filter(user_id=user_id).delete()

    def _store_codes(self, user_id: str, codes: Sequence[str]) -> None:
        with transaction.atomic():
            self.codes.objects.filter(user_id=user_id).delete()
            self.codes.objects.bulk_create(
                self.codes(user_id=user_id, code_hash=_hash(code)) for code in codes
            )

    def _guesses(self, user_id: str) -> str:
        return f"{self.name}:{user_id}"

    def _use_step(self, user_id: str, token: str) -> int:
        factor = self.factors.objects.filter(user_id=user_id).first()
        if factor is None:
            return 0
        step = _step_of(_decrypt(factor.secret), token, after=factor.last_step)
        if step is None:
            return 0
        # Of several requests with this token, the first moves last_step; the others find it moved.
        # The secret is compared because a token of the former one must not count for a new one.
        return int(
            self.factors.objects.filter(
                user_id=user_id, secret=factor.secret, last_step__lt=step
            ).update(last_step=step)
        )


_users: Final = SecondFactors(SecondFactor, RecoveryCode, number_of_codes=2, name="guesses")
is_set_up = _users.is_set_up
set_up = _users.set_up
transfer = _users.transfer
check = _users.check
remove = _users.remove


def status(user_id: str) -> dict[str, Json]:
    """What the owner may see of it: ``{"status": "enabled"}`` or ``disabled``."""
    return dict(ENABLED if is_set_up(user_id) else _DISABLED)


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
