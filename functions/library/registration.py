"""``registerInit`` and ``registerComplete``: sign up with a passkey, or add a passkey.

A registration creates the user, the passkey, the wallets and the session in one transaction. The
token of ``registerInit`` is valid until a registration succeeds, or until an authenticator response
fails verification. After any other failure (such as a custodian that doesn't respond) the same
request may be sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from backend.kernel.errors import OperationForbidden, ScriptFailed, UsernameMissing, UsernameTaken
from backend.kernel.json_types import Json
from backend.kernel.networks import client_network
from backend.kernel.principal import MASTER, Principal
from backend.kernel.texts.spelling import name_key
from backend.logs.setup import get_logger
from chain.wallets import custody
from chain.wallets.adapters import CustodyFailed, Owner
from functions import FunctionRequest
from functions.runtime.parameters import Meta
from functions.runtime.registry import function
from objects import service
from objects.core.names import USER, ObjectId, new_object_id
from objects.database import maintenance
from objects.database.orm import orm_queries
from objects.database.transactions import all_or_nothing
from objects.storage.records import wire_object
from objects.users.accounts import directory
from objects.users.adapters import ProviderIdentity
from objects.users.models import User
from objects.users.names import check_new_username, check_username
from objects.users.passkeys import PROVIDER, ceremonies, challenges, keys
from objects.users.passkeys.ceremonies import Credential, NewPasskey, Unverified
from objects.users.passkeys.challenges import Challenge
from objects.users.sessions import gate

TIME_LIMIT: Final = 60.0  # seconds: custodians elsewhere take their time

Name = Annotated[str, Meta(max_length=keys.LONGEST_NAME), "what the user calls the passkey"]
Token = Annotated[str, Meta(min_length=1), "as it came with the options"]

log = get_logger("passkeys")


@function("registerInit")
def register_init(
    request: FunctionRequest, username: Annotated[str, Meta(min_length=1)]
) -> dict[str, Json]:
    """Options for ``navigator.credentials.create``, to sign up with a passkey under this name; for
    a user who is logged in and gives their own name, to add one to their account.

    ``temporaryAuthenticationToken`` goes to ``registerComplete`` with the authenticator's answer;
    it is valid for ten minutes. A name that is taken is error 202, as for any signup.
    """
    name = _checked(check_username, username)
    refuse_read_only(request)
    maintenance.check()
    if request.user_id is not None and _is_own(request, name):
        user_id = request.user_id
        issued = challenges.issue(
            "add", username=name, user_id=user_id, address=client_network(request.address)
        )
        return ceremonies.registration_options(issued, user_id, name, keys.ids_of(user_id))
    _checked(check_new_username, name)
    if directory.id_of_name(name) is not None:
        raise UsernameTaken("Account already exists for this username.")
    user_id = new_object_id()
    issued = challenges.issue(
        "register",
        username=name,
        user_id=user_id,
        address=client_network(request.address),
        invited=_invited(Owner(user_id, name)),
    )
    return ceremonies.registration_options(issued, user_id, name)


def _invited(owner: Owner) -> tuple[bytes, str] | None:
    try:
        return custody.invite(owner)
    except CustodyFailed as error:
        log.error("a registration could not be begun", reason=str(error))
        raise ScriptFailed("The registration could not be begun. Try again later.") from None


@function("registerComplete", time_limit=TIME_LIMIT)
def register_complete(
    request: FunctionRequest,
    signedChallenge: dict[str, Any],
    temporaryAuthenticationToken: Token,
    name: Name = "",
    mfaToken: Annotated[str, "the second factor, where a passkey is added to a user who has one"]
    | None = None,
) -> dict[str, Json]:
    """Sign up with what the authenticator has answered: ``{"token", "user": {"id", "username"},
    "wallets": [{id, network, address}]}``. ``token`` is a session token.

    ``signedChallenge`` is a WebAuthn RegistrationResponseJSON, or ``{"firstFactorCredential":
    {"credentialKind": "Fido2", "credentialInfo": {credId, clientData, attestationData}}}``. It is
    error 141 if anything of it doesn't hold, and then nothing has been made.
    """
    try:
        credential = ceremonies.read_attestation(signedChallenge)
    except Unverified as error:
        raise ScriptFailed(f"Invalid parameter signedChallenge: {error}") from None
    refuse_read_only(request)
    maintenance.check()
    challenge = challenges.find(temporaryAuthenticationToken, "register", "add")
    if challenge.purpose == "add" and challenge.user_id != request.user_id:
        raise ScriptFailed(f"{challenges.NAME}: it was given to a user who isn't logged in")
    try:
        new = ceremonies.verify_attestation(credential, challenge.challenge)
    except Unverified as error:
        challenges.spoil(temporaryAuthenticationToken)
        raise ScriptFailed(f"signedChallenge: {error}") from None

    def carry_out() -> dict[str, Json]:
        challenges.use(temporaryAuthenticationToken)
        if challenge.purpose == "add":
            return _add(request.principal, challenge, new, name, mfaToken)
        owner, token = _register(request.principal, challenge, new, name)
        return _answer(token, owner, credential, challenge.invitation)

    return all_or_nothing(carry_out)


def _register(
    principal: Principal, challenge: Challenge, new: NewPasskey, name: str
) -> tuple[Owner, Json]:
    """Create the user with a passkey and a session, and return the user and session token.

    Runs in the transaction that uses the registration token.
    """
    user_id, username = ObjectId(str(challenge.user_id)), str(challenge.username)
    identity = ProviderIdentity(user_id)
    body: dict[str, Any] = {"username": username, "authData": {PROVIDER: identity}}
    created = service.create(as_nobody(principal), USER, body, object_id=user_id)
    keys.add(user_id, new, name)
    return _owner(user_id), created.fields.get("sessionToken")


def _add(
    principal: Principal, challenge: Challenge, new: NewPasskey, name: str, mfa_token: str | None
) -> dict[str, Json]:
    """Add a passkey to an existing user."""
    user_id = ObjectId(str(challenge.user_id))
    lock_for_change(user_id)
    # A session alone, which may be stolen, doesn't get past the second factor by a new key.
    gate.check_second_factor(user_id, mfa_token)
    if not keys.ids_of(user_id):
        identity: Any = {PROVIDER: ProviderIdentity(user_id)}
        service.update(MASTER, USER, user_id, {"authData": identity})
    keys.add(user_id, new, name)
    return _answer(principal.session_token, _owner(user_id))


def _owner(user_id: str) -> Owner:
    # A trigger may have chosen another name.
    username = wire_object(service.get(MASTER, USER, ObjectId(user_id))).get("username")
    return Owner(user_id, str(username or ""))


def _answer(
    token: Json,
    owner: Owner,
    credential: Credential | None = None,
    invitation: str | None = None,
) -> dict[str, Json]:
    """Create the user's missing wallets and return the response.

    The last step of the transaction. Raises ``ScriptFailed`` if the custodian fails.
    """
    try:
        wallets = custody.create_wallets(owner, credential, invitation)
    except CustodyFailed as error:
        log.error("wallets could not be made", reason=str(error), user=owner.user_id)
        raise ScriptFailed(
            "The wallets could not be made, so nothing was. Try again with the same answer."
        ) from None
    return {
        "token": token,
        "user": {"id": owner.user_id, "username": owner.username},
        "wallets": [*custody.shown(wallets)],
    }


def _checked(check: Callable[[object], str], username: str) -> str:
    """Return the name, or raise the check's error as that of a parameter."""
    try:
        return check(username)
    except UsernameMissing as error:
        raise ScriptFailed(f"Invalid parameter username: {error.message}") from None


def _is_own(request: FunctionRequest, name: str) -> bool:
    username = None if request.user is None else request.user.get("username")
    return isinstance(username, str) and name_key(username) == name_key(name)


def as_nobody(principal: Principal) -> Principal:
    """Return the caller without its session, for signup and login."""
    return Principal(principal.authority, installation_id=principal.installation_id)


def refuse_read_only(request: FunctionRequest) -> None:
    """Raise ``OperationForbidden`` for the master key that only reads."""
    if request.read_only:
        raise OperationForbidden("read-only masterKey isn't allowed to use passkeys.")


def lock_for_change(user_id: str) -> None:
    """Lock the user's row until the transaction ends."""
    users = User.objects.select_for_update(no_key=True).filter(pk=user_id)
    with orm_queries():
        list(users.values_list("pk"))
