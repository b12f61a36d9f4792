"""The stored passkeys of one kind of accounts: of users, which this module's functions are about,
and of staff (``objects.staff``)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q
from django.utils import timezone
from psycopg.errors import UniqueViolation
from webauthn.helpers import bytes_to_base64url

from backend.kernel.encryption import secret_keys
from backend.kernel.errors import ScriptFailed, ValidationFailed
from backend.kernel.json_types import Json
from backend.kernel.texts.spelling import name_key
from backend.logs.setup import get_logger
from objects.core.values import wire_time
from objects.database.orm import orm_queries
from objects.users.passkeys.ceremonies import Assertion, NewPasskey
from objects.users.passkeys.models import Passkey

MOST: Final = 20  # of one user
LONGEST_NAME: Final = 100  # characters

log = get_logger("passkeys")


@dataclass(frozen=True, slots=True)
class Known:
    """A passkey that is there, and whose it is."""

    credential_id: str
    user_id: str
    public_key: bytes


def invented(username: str) -> str:
    """Return the id of a passkey that doesn't exist, for users who don't exist or have none:
    always the same for the same name, so that the answer doesn't tell."""
    key = hashlib.sha256(f"passkeys of nobody {secret_keys()[0]}".encode()).digest()
    return bytes_to_base64url(hmac.digest(key, name_key(username).encode(), "sha256"))


@dataclass(frozen=True, slots=True)
class Passkeys:
    """The passkeys of one kind of accounts; ``model`` has ``PasskeyColumns`` and ``user_id``."""

    model: type[Any]

    def add(self, user_id: str, new: NewPasskey, name: str) -> None:
        """Give a user a passkey, in the transaction that has locked the user.

        Raises ``ScriptFailed`` if a user has it already, ``ValidationFailed`` for one too many.
        """
        if self.model.objects.filter(user_id=user_id).count() >= MOST:
            raise ValidationFailed(f"A user has at most {MOST} passkeys.")
        now = timezone.now()
        try:
            with orm_queries():
                self.model.objects.create(
                    credential_id=new.credential_id,
                    user_id=user_id,
                    public_key=new.public_key,
                    sign_count=new.sign_count,
                    name=name,
                    aaguid=new.aaguid,
                    attestation=new.attestation,
                    transports=list(new.transports),
                    backed_up=new.backed_up,
                    created_at=now.replace(microsecond=now.microsecond // 1000 * 1000),
                )
        except UniqueViolation:
            raise ScriptFailed("signedChallenge: this passkey is in use already") from None

    def find(self, credential_id: str) -> Known | None:
        """The passkey with this id."""
        passkey = self.model.objects.filter(credential_id=credential_id).first()
        return (
            None
            if passkey is None
            else Known(passkey.credential_id, passkey.user_id, bytes(passkey.public_key))
        )

    def ids_of(self, user_id: str) -> list[str]:
        """The ids of a user's passkeys, the newest first."""
        passkeys = self.model.objects.filter(user_id=user_id).order_by(
            "-created_at", "credential_id"
        )
        return list(passkeys.values_list("credential_id", flat=True))

    def note_use(self, passkey: Known, assertion: Assertion) -> bool:
        """Keep what a verified signature says; whether its counter has gone on.

        One that hasn't means that a copy of the key is around. The row is locked until the
        transaction ends, so of two signatures with one counter the second is refused.
        """
        count = assertion.sign_count
        has_gone_on = Q(sign_count__lt=count)
        if count == 0:  # it doesn't count, and never has
            has_gone_on |= Q(sign_count=0)
        done = self.model.objects.filter(
            has_gone_on, credential_id=passkey.credential_id, user_id=passkey.user_id
        ).update(sign_count=count, backed_up=assertion.backed_up, used_at=timezone.now())
        if not done:
            log.warning("the counter of a passkey has not gone on", user=passkey.user_id)
        return bool(done)

    def shown(self, user_id: str) -> list[dict[str, Json]]:
        """A user's passkeys as their owner sees them, the newest first."""
        return [
            {
                "id": passkey.credential_id,
                "name": passkey.name,
                "createdAt": wire_time(passkey.created_at),
                "lastUsedAt": None if passkey.used_at is None else wire_time(passkey.used_at),
                "transports": passkey.transports,
                "backedUp": passkey.backed_up,
                "authenticator": passkey.aaguid,
            }
            for passkey in self.model.objects.filter(user_id=user_id).order_by(
                "-created_at", "credential_id"
            )
        ]

    def remove(self, user_id: str, credential_id: str) -> bool:
        """Take a passkey away; whether the user had it."""
        removed, _ = self.model.objects.filter(
            user_id=user_id, credential_id=credential_id
        ).delete()
        return bool(removed)

    def remove_all(self, user_id: str) -> None:
        """Take all passkeys of a user away."""
        self.model.objects.filter(user_id=user_id).delete()


_users: Final = Passkeys(Passkey)
add = _users.add
find = _users.find
ids_of = _users.ids_of
note_use = _users.note_use
shown = _users.shown
remove = _users.remove
remove_all = _users.remove_all
