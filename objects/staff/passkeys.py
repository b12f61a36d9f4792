"""Passkeys of staff: the two ceremonies of WebAuthn for the pages of the admin.

They belong to the host of the admin, wherever the apps' passkeys belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from django.contrib.auth.models import User
from django.db import transaction

from backend.kernel.errors import InvalidSecondFactor, ScriptFailed
from backend.kernel.json_types import Json
from backend.logs.setup import get_logger
from objects.staff import second_factor
from objects.staff.second_factor import PASSKEYS
from objects.users.passkeys import ceremonies, challenges, keys, relying_party
from objects.users.passkeys.ceremonies import Credential, Unverified
from objects.users.passkeys.challenges import Purpose
from objects.users.passkeys.relying_party import RelyingParty

_Verified = TypeVar("_Verified")

log = get_logger("admin")


def party_of(host: str) -> RelyingParty:
    """Return the relying party of the admin at this host."""
    return relying_party.of_site(host)


def creation_options(party: RelyingParty, user: User, address: str) -> dict[str, Json]:
    """Return what a page hands to ``navigator.credentials.create``."""
    user_id = str(user.pk)
    issued = challenges.issue("staff add", username=None, user_id=user_id, address=address)
    return ceremonies.registration_options(
        issued,
        # Distinct from those of users, whose passkeys may belong to the same domain.
        f"staff:{user_id}",
        user.get_username(),
        PASSKEYS.ids_of(user_id),
        party=party,
    )


def request_options(party: RelyingParty, user: User, address: str) -> dict[str, Json]:
    """Return what a page hands to ``navigator.credentials.get``."""
    user_id = str(user.pk)
    issued = challenges.issue("staff log in", username=None, user_id=user_id, address=address)
    return ceremonies.authentication_options(issued, PASSKEYS.ids_of(user_id), party=party)


def add(
    party: RelyingParty,
    user: User,
    token: str,
    answer: str,
    name: str,
    *,
    seen: datetime | None,
) -> list[str]:
    """Store the passkey that an authenticator has made; return recovery codes if it is the first
    second factor. ``seen`` is as for ``second_factor.set_up_app``. Raises ``InvalidSecondFactor``,
    and what ``PASSKEYS.add`` raises."""
    challenge = _challenge("staff add", user, token)
    new = _verified(
        user,
        answer,
        ceremonies.read_attestation,
        lambda credential: ceremonies.verify_attestation(credential, challenge, party=party),
    )
    with transaction.atomic():
        challenges.use(token)
        return second_factor.add_passkey(user, new, name[: keys.LONGEST_NAME], seen=seen)


def check(party: RelyingParty, user: User, token: str, answer: str) -> None:
    """Check a signature by one of the staff user's passkeys. Raises ``InvalidSecondFactor``."""
    challenge = _challenge("staff log in", user, token)
    challenges.use(token)

    def verify(credential: Credential) -> None:
        passkey = PASSKEYS.find(credential["id"])
        if passkey is None or str(passkey.user_id) != str(user.pk):
            raise Unverified("it isn't the staff user's")
        proven = ceremonies.verify_assertion(credential, challenge, passkey.public_key, party=party)
        if not PASSKEYS.note_use(passkey, proven):
            raise Unverified("its counter has not gone on, or it was removed")

    _verified(user, answer, ceremonies.read_assertion, verify)


def _challenge(purpose: Purpose, user: User, token: str) -> bytes:
    try:
        challenge = challenges.find(token, purpose)
    except ScriptFailed:
        raise InvalidSecondFactor("The page is too old, or was used before. Try again.") from None
    if challenge.user_id != str(user.pk):
        raise InvalidSecondFactor("The page was made for another account. Load it again.")
    return challenge.challenge


def _verified(
    user: User,
    answer: str,
    read: Callable[[dict[str, Any]], Credential],
    verify: Callable[[Credential], _Verified],
) -> _Verified:
    try:
        return verify(read(msgspec.json.decode(answer, type=dict[str, Any])))
    except (Unverified, msgspec.MsgspecError, RecursionError) as error:
        log.warning("staff passkey refused", staff=user.get_username(), reason=str(error))
        raise InvalidSecondFactor("The passkey could not be verified.") from None
