"""Login with passkeys, and the list of a user's passkeys."""

from __future__ import annotations

from typing import Annotated, Any

from django.db import transaction

from backend.kernel.errors import ObjectNotFound, OperationForbidden, ScriptFailed
from backend.kernel.json_types import Json
from backend.kernel.networks import client_network
from backend.kernel.principal import MASTER, Principal
from backend.kernel.texts.spelling import has_control_characters
from backend.logs.setup import get_logger
from chain.wallets import custody
from functions import FunctionRequest
from functions.library.registration import Token, as_nobody, lock_for_change, refuse_read_only
from functions.runtime.parameters import Meta
from functions.runtime.registry import function
from objects import service
from objects.core.names import USER, ObjectId
from objects.database import maintenance
from objects.users import sign_in
from objects.users.accounts import directory
from objects.users.passkeys import PROVIDER, ceremonies, challenges, keys
from objects.users.passkeys.ceremonies import Credential, Unverified
from objects.users.passkeys.challenges import Challenge
from objects.users.passkeys.keys import Known
from objects.users.sessions import gate

_NOT_PROVEN = "The passkey could not be verified."

log = get_logger("passkeys")


@function("passkeyLoginInit")
def passkey_login_init(
    request: FunctionRequest,
    username: Annotated[str, Meta(min_length=1, max_length=256)] | None = None,
) -> dict[str, Json]:
    """Options for ``navigator.credentials.get``: with a name for one of that user's passkeys, else
    for any that the authenticator has for this domain.

    ``temporaryAuthenticationToken`` goes to ``passkeyLoginComplete`` with the response. An unknown
    name gets options as well.
    """
    refuse_read_only(request)
    allowed: list[str] = []
    user_id = None
    if username is not None:
        if has_control_characters(username):
            raise ScriptFailed("Invalid parameter username: control characters. Remove them.")
        # For an unknown name the challenge belongs to no user, so no passkey matches.
        user_id = directory.id_of_name(username) or ""
        allowed = keys.ids_of(user_id) or [keys.invented(username)]
    issued = challenges.issue(
        "log in", username=None, user_id=user_id, address=client_network(request.address)
    )
    return ceremonies.authentication_options(issued, allowed)


@function("passkeyLoginComplete")
def passkey_login_complete(
    request: FunctionRequest,
    assertion: dict[str, Any],
    temporaryAuthenticationToken: Token,
    mfaToken: Annotated[str, "the second factor, where the authenticator hasn't verified the user"]
    | None = None,
) -> dict[str, Json]:
    """Log in with what the authenticator has signed: ``{"token", "user": {"id", "username"},
    "wallets"}`` as from ``registerComplete``. The token is valid for one attempt.

    ``assertion`` is a WebAuthn AuthenticationResponseJSON, or ``{"firstFactor": {"kind": "Fido2",
    "credentialAssertion": {credId, clientData, authenticatorData, signature, userHandle}}}``.
    A failed verification is error 141, without the reason. The conditions that prevent a login with
    a password (a locked account, an unverified address, a trigger) apply here too.
    """
    try:
        credential = ceremonies.read_assertion(assertion)
    except Unverified as error:
        raise ScriptFailed(f"Invalid parameter assertion: {error}") from None
    refuse_read_only(request)
    challenge = challenges.find(temporaryAuthenticationToken, "log in")
    challenges.use(temporaryAuthenticationToken)
    try:
        return _logged_in(as_nobody(request.principal), challenge, credential, mfaToken)
    except Unverified as error:
        log.info("passkey refused", reason=str(error), address=request.address)
        raise ScriptFailed(_NOT_PROVEN) from None


def _logged_in(
    principal: Principal, challenge: Challenge, credential: Credential, mfa_token: str | None
) -> dict[str, Json]:
    passkey = _passkey(challenge, credential)
    proven = ceremonies.verify_assertion(credential, challenge.challenge, passkey.public_key)
    with transaction.atomic():
        gate.lock(passkey.user_id)
        if not keys.note_use(passkey, proven):
            raise Unverified("its counter has not gone on, or it was removed")
        user = sign_in.log_in_with_passkey(
            principal,
            passkey.user_id,
            PROVIDER,
            is_strong=proven.user_verified,
            second_factor_token=mfa_token,
        )
    return {
        "token": user["sessionToken"],
        "user": {"id": passkey.user_id, "username": user.get("username")},
        "wallets": [*custody.shown(custody.wallets_of(passkey.user_id))],
    }


def _passkey(challenge: Challenge, credential: Credential) -> Known:
    passkey = keys.find(credential["id"])
    if passkey is None:
        raise Unverified("nobody has this passkey")
    handle = ceremonies.user_handle(credential)
    if challenge.user_id is None and handle is None:
        raise Unverified("it doesn't say whose it is")
    if challenge.user_id not in (None, passkey.user_id) or handle not in (None, passkey.user_id):
        raise Unverified("it is another user's")
    return passkey


@function("listPasskeys", require_user=True, even_master=True)
def list_passkeys(request: FunctionRequest) -> list[dict[str, Json]]:
    """The caller's own passkeys, the newest first: ``[{id, name, createdAt, lastUsedAt,
    transports, backedUp, authenticator}]``."""
    return keys.shown(str(request.user_id))


@function("removePasskey", require_user=True, even_master=True)
def remove_passkey(
    request: FunctionRequest, id: Annotated[str, Meta(min_length=1, max_length=1364)]
) -> dict[str, Json]:
    """Take one of the caller's own passkeys away: ``{}``. The last one stays if there is no other
    way into the account (error 119)."""
    user_id = str(request.user_id)
    with maintenance.writing():
        lock_for_change(user_id)
        if not keys.remove(user_id, id):
            raise ObjectNotFound("The user has no such passkey.")
        if not keys.ids_of(user_id):
            standing = directory.standing(user_id)
            other_providers = [name for name, _ in standing.identities if name != PROVIDER]
            if not standing.has_password and not other_providers:
                raise OperationForbidden("It is the only way into the account.")
            service.update(MASTER, USER, ObjectId(user_id), {"authData": {PROVIDER: None}})
    return {}
