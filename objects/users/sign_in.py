"""Signing in: by name and password, by another service, by the master key for a user.

All ways pass ``sessions.gate`` and end in the user's object as its owner sees it, with a new
session's token. Errors don't reveal whether there is such a user (docs/users.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.db import transaction

from backend.kernel.errors import (
    AccountAlreadyLinked,
    InvalidJSON,
    InvalidSessionToken,
    InvalidValue,
    ObjectNotFound,
    OperationForbidden,
    OtherCause,
    PasswordMissing,
    UsernameMissing,
)
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import MASTER, Principal
from backend.kernel.texts.spelling import check_account_name
from objects import service, triggers
from objects.core.names import SESSION, USER, ObjectId, is_object_id
from objects.core.query.tree import FindOptions
from objects.database import maintenance
from objects.storage.records import wire_object
from objects.triggers import Occasion
from objects.users import adapters, rows
from objects.users.accounts import passwords
from objects.users.accounts.owner_view import account_of
from objects.users.accounts.second_factor import MFA
from objects.users.adapters import identities
from objects.users.names import account_keys
from objects.users.rows import Account, AccountKeys
from objects.users.rules.users import verified
from objects.users.sessions import gate, tokens


def _accounts(username: str | None, email: str | None) -> list[Account | None]:
    """Return the accounts to compare a password with, in their order; None where there is none.

    A ``username`` alone may be a user's address. If it is another user's name as well, the user who
    has verified the address comes second: taking an address as a name locks no owner out. The
    length depends on the text alone, so the time of a log-in reveals no account.
    """
    name, address = _keys(username), _keys(email)
    if username is None or email is not None:
        return [rows.account_of_name(name, address)]
    named = rows.account_of_name(name, AccountKeys())
    if "@" not in (name.key or ""):
        return [named]
    owner = rows.account_of_name(AccountKeys(), name)
    if named is None:
        return [owner, None]
    is_other = owner is not None and owner.user_id != named.user_id
    return [named, owner if is_other and owner and owner.address_is_verified else None]


def _keys(text: str | None) -> AccountKeys:
    """Return the keys of a name or an address without the spaces around it.

    Only accounts that are older than the rules about spaces have them, so the former key keeps
    them.
    """
    if text is None:
        return AccountKeys()
    former = account_keys(check_account_name(text))[1]
    return AccountKeys(account_keys(text.strip())[0], former)


def _check_password(body: Mapping[str, Any]) -> Account:
    """Return the account that the name or the address and the password belong to.

    Everything that compares a user's password calls this (tests/security/test_password_guesses.py).
    Raises ``UsernameMissing``, ``PasswordMissing``, ``ObjectNotFound`` (wrong, or locked).
    """
    username, email, password = (body.get(name) for name in ("username", "email", "password"))
    if not username and not email:
        raise UsernameMissing("username/email is required.")
    if not password:
        raise PasswordMissing("password is required.")
    if not all(value is None or isinstance(value, str) for value in (username, email, password)):
        raise ObjectNotFound(gate.WRONG)
    accounts = _accounts(username or None, email or None)
    return _owner_of(str(password), accounts, _keys(username or email).key or "")


def _owner_of(password: str, accounts: list[Account | None], name: str) -> Account:
    """Return the first account with this password, after as many comparisons as accounts.

    Each is one guess at its account, but not if the password is that of another one.
    """
    owner: Account | None = None
    refusal = ObjectNotFound(gate.WRONG)
    claimed: list[str] = []
    for place, account in enumerate(accounts):
        if account is not None and owner is None:
            try:
                passwords.claim_guess(account.user_id)
            except ObjectNotFound as error:
                refusal = error
                continue
            claimed.append(account.user_id)
        compared = account if owner is None else None
        user_id, encoded = (compared.user_id, compared.encoded) if compared else (None, None)
        if passwords.is_right(user_id, password, encoded, f"{name}{' ' * place}"):
            owner = compared
    if owner is None:
        raise refusal
    for user_id in claimed:
        if user_id != owner.user_id:
            passwords.return_guess(user_id)
    return owner


def log_in(principal: Principal, body: Mapping[str, Any]) -> Wire:
    """Sign in with a password, and a second factor if the user has one.

    With the master key and ``ignoreEmailVerification`` the address may be unverified.
    """
    return _entered(_proven(principal, body), "password")


def verify_password(principal: Principal, body: Mapping[str, Any]) -> Wire:
    """Return the user whom the name or the address and the password belong to; no session starts.

    The conditions are those of a log-in, second factor included: the answer shows the account.
    """
    return account_of(_proven(principal, body).account.user_id)


def _proven(principal: Principal, body: Mapping[str, Any]) -> gate.Examined:
    account = _check_password(body)
    data = body.get("authData")
    if data is not None and not isinstance(data, dict):
        raise InvalidJSON("authData: expected an object of providers")
    examined = gate.examine(
        principal,
        account.user_id,
        gate.PASSWORD,
        account=account,
        second_factor_token=_second_factor_token(data),
        ignores_address=(
            principal.is_master and body.get("ignoreEmailVerification") in (True, "true")
        ),
    )
    # Only now: guesses at the second factor count as well.
    passwords.forget_guesses(account.user_id)
    return examined


def _second_factor_token(auth_data: Mapping[str, Any] | None) -> str | None:
    factor = (auth_data or {}).get(MFA)
    token = factor.get("token") if isinstance(factor, dict) else None
    return token if isinstance(token, str) else None


def _entered(examined: gate.Examined, provider: str) -> Wire:
    token = gate.enter(examined, provider)
    return {**account_of(examined.account.user_id), "sessionToken": token}


def sign_in_with_providers(principal: Principal, body: dict[str, Any]) -> Wire | None:
    """Sign in the user who has an identity that the body's ``authData`` proves; None if there is
    none.

    The other identities that it proves are linked to the user. In ``body`` the proofs are put in
    place of the data, for a sign-up with them: some count once. A caller who has a session of this
    user keeps it. Raises ``AccountAlreadyLinked`` if the identities belong to more than one user,
    or to another one than the caller's.
    """
    data = body.get("authData")
    if not isinstance(data, dict) or "__op" in data:
        return None
    proven = {
        name: verified(name, item)
        for name, item in data.items()
        if name != MFA and item is not None
    }
    if not proven:
        return None
    body["authData"] = {**data, **proven}
    owners = _owners(proven)
    if not owners:
        return None
    if len(owners) > 1:
        raise AccountAlreadyLinked("this auth is already used")
    user_id = owners.pop()
    if principal.user_id is not None and principal.user_id != user_id:
        raise AccountAlreadyLinked("this auth is already used")
    with transaction.atomic():
        gate.lock(user_id)
        # An identity that was removed from the account in the meantime proves nothing any more.
        if user_id not in _owners(proven):
            raise ObjectNotFound(gate.WRONG)
        if principal.user_id == user_id:
            _link(user_id, proven)
            return {**account_of(user_id), "sessionToken": principal.session_token}
        examined = gate.examine(
            principal,
            user_id,
            gate.PROVIDER,
            second_factor_token=_second_factor_token(data),
        )
        _link(user_id, proven)
        return _entered(examined, ",".join(proven))


def _owners(proven: Mapping[str, adapters.ProviderIdentity]) -> set[str]:
    """Return the users who have one of these identities."""
    users = (identities.user_of(name, identity.id) for name, identity in proven.items())
    return {user_id for user_id in users if user_id is not None}


def _link(user_id: str, proven: Mapping[str, adapters.ProviderIdentity]) -> None:
    """Store what is new of these identities, such as a provider's current data."""
    stored = rows.auth_data(user_id)
    changed = {
        name: identity
        for name, identity in proven.items()
        if stored.get(name) != identity.to_wire()
    }
    # Logins go on during maintenance, and change no object then.
    if changed and maintenance.state() is None:
        identities.replace(user_id, changed)
        rows.merge_auth_data(user_id, {name: item.to_wire() for name, item in changed.items()})


def session_after_linking(principal: Principal, user_id: str, auth_data: object) -> str | None:
    """Return the token of a session of the user whom the master key has just linked to providers.

    None for other callers, and if ``auth_data`` links none.
    """
    if not principal.may_write_as_master or not isinstance(auth_data, dict):
        return None
    linked = [name for name, data in auth_data.items() if name != MFA and data is not None]
    if not linked:
        return None
    return gate.enter(gate.examine(principal, user_id, gate.MASTER_LINK), ",".join(linked))


def log_in_with_passkey(
    principal: Principal,
    user_id: str,
    provider: str,
    *,
    is_strong: bool,
    second_factor_token: str | None = None,
) -> Wire:
    """Sign in a user who is proven by a passkey.

    ``is_strong``: the authenticator has verified the user, so no second factor is needed. Call it
    in a transaction, after ``gate.lock``.
    """
    way = gate.VERIFIED_PASSKEY if is_strong else gate.PASSKEY
    examined = gate.examine(principal, user_id, way, second_factor_token=second_factor_token)
    return _entered(examined, provider)


def log_in_as(principal: Principal, user_id: object) -> Wire:
    """Start a session of any user, for the master key."""
    if not principal.has_master_key:
        raise OperationForbidden("master key is required")
    if not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to login as another user.")
    if not isinstance(user_id, str) or not user_id:
        raise InvalidValue("userId must not be empty, null, or undefined")
    if not is_object_id(user_id):
        raise ObjectNotFound("user not found")
    return _entered(gate.examine(principal, user_id, gate.MASTER_KEY), "masterkey")


def log_out(principal: Principal) -> None:
    """End the session of the request, if there is one; with the master key too."""
    session_id = principal.session_id
    if session_id is None and principal.may_write_as_master and principal.session_token:
        with suppress(InvalidSessionToken):
            session_id = tokens.bearer(principal.session_token, may_be_expired=True).session_id
    if session_id is None:
        return
    session: Wire | None = None
    if triggers.has(SESSION, "after_logout"):
        session = wire_object(service.get(MASTER, SESSION, ObjectId(session_id)))
    tokens.end(session_id)
    if session is not None:
        triggers.run_after_commit(Occasion("after_logout", SESSION, principal, object=session))


def own_session(token: str, principal: Principal) -> Wire:
    """Return the session of a token, also of an expired one, as its user sees it.

    With a master key, as that sees it. Raises ``InvalidSessionToken``.
    """
    session = tokens.bearer(token, may_be_expired=True)
    caller = principal if principal.is_master else replace(principal, user_id=session.user_id)
    try:
        wire = wire_object(service.get(caller, SESSION, ObjectId(session.session_id)))
    except ObjectNotFound:
        raise InvalidSessionToken("Session token not found.") from None
    return {**wire, "sessionToken": token}


def own_account(token: str, principal: Principal, options: FindOptions) -> Wire:
    """Return the user of a session token that came along with a master key."""
    session = tokens.bearer(token)
    try:
        user = wire_object(service.get(principal, USER, ObjectId(session.user_id), options))
    except ObjectNotFound:
        raise InvalidSessionToken("Invalid session token") from None
    return {**user, "sessionToken": token}


def upgrade_session(principal: Principal) -> Wire:
    """Start a session in exchange for the one of the request; return it with its token.

    Sessions have always been revocable here, so none has to be upgraded.
    """
    if principal.user_id is None:
        raise ObjectNotFound("invalid session")
    token = gate.enter(gate.examine(principal, principal.user_id, gate.UPGRADE))
    return own_session(token, principal)


def challenge(principal: Principal, body: Mapping[str, Any]) -> dict[str, Json]:
    """What providers ask the client to answer, by ``challengeData``.

    A user name or an address may come along, with the password: the answer is the same, but a wrong
    password is refused, as by ``verify_password``.
    """
    if body.get("username") or body.get("email"):
        if not body.get("password"):
            raise OtherCause("You provided username or email, you need to also provide password.")
        verify_password(principal, body)
    challenge_data = body.get("challengeData")
    if not challenge_data:
        raise OtherCause("Nothing to challenge.")
    if not isinstance(challenge_data, dict):
        raise OtherCause("challengeData should be an object.")
    answers: dict[str, Json] = {}
    for provider, data in challenge_data.items():
        if not isinstance(data, dict):
            raise InvalidJSON(f"challengeData.{provider}: expected an object")
        question = adapters.challenge(provider, data)
        if question is not None:
            answers[provider] = question
    return {"challengeData": answers}
