"""Signing in: by name and password, by another service, by the master key for a user.

All ways end in ``SignedIn``: the user's object as its owner sees it, with a new session's token.
Errors tell nothing about whether there is such a user (reference 1.2, 8.2 theme 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from backend.conf import service_settings
from backend.errors import (
    AccountAlreadyLinked,
    EmailNotFound,
    InvalidJSON,
    InvalidSessionToken,
    InvalidValue,
    MasterKeyRequired,
    ObjectNotFound,
    OperationForbidden,
    OtherCause,
    PasswordMissing,
    SecondFactorMissing,
    UsernameMissing,
)
from backend.principal import MASTER, Authority, Principal
from objects import service, triggers
from objects.core.names import is_object_id
from objects.core.values import Json
from objects.database import Row, fetch
from objects.records import wire_object
from objects.triggers import Event, Occasion
from objects.users import adapters, identities, passwords, second_factor, sessions
from objects.users.names import check_account_name, name_key
from objects.users.user_rules import MFA, verified

_WRONG = "Invalid username/password."

Wire = dict[str, Json]


@dataclass(frozen=True)
class _Account:
    """What signing in has to know of a user."""

    user_id: str
    email_verified: bool
    is_closed: bool
    encoded: str | None
    password_changed_at: str | None


_ACCOUNT = """
SELECT u.object_id, COALESCE(u.email_verified, false),
       COALESCE(cardinality(u.read_acl) = 0 AND cardinality(u.write_acl) = 0, false),
       p.encoded, p.changed_at::text
FROM objects_user u LEFT JOIN objects_password p ON p.user_id = u.object_id
"""
_BY_NAME = f"""{_ACCOUNT}
WHERE (%s::text IS NULL OR u.username_key = %s) AND (%s::text IS NULL OR u.email_key = %s)
"""
_BY_ID = f"{_ACCOUNT} WHERE u.object_id = %s"


def _find(username: str | None, email: str | None) -> _Account | None:
    name, address = (
        None if one is None else name_key(check_account_name(one)) for one in (username, email)
    )
    return _account(fetch(_BY_NAME, (name, name, address, address), prepare=False))


def _account(rows: list[Row]) -> _Account | None:
    if not rows:
        return None
    user_id, is_verified, is_closed, encoded, changed_at = rows[0]
    return _Account(user_id, is_verified == "t", is_closed == "t", encoded, changed_at)


def check_password(principal: Principal, given: Mapping[str, Any]) -> _Account:
    """The user that ``username`` or ``email`` and ``password`` are right for.

    Raises ``UsernameMissing``, ``PasswordMissing``, ``ObjectNotFound`` (wrong, locked, expired),
    ``EmailNotFound`` (not verified). With the master key and ``ignoreEmailVerification`` the last
    isn't looked at.
    """
    username, email, password = (given.get(name) for name in ("username", "email", "password"))
    if not username and not email:
        raise UsernameMissing("username/email is required.")
    if not password:
        raise PasswordMissing("password is required.")
    if not all(one is None or isinstance(one, str) for one in (username, email, password)):
        raise ObjectNotFound(_WRONG)
    account = _find(username or None, email or None)
    if account is not None:
        passwords.claim_guess(account.user_id)
    user_id, encoded = (account.user_id, account.encoded) if account else (None, None)
    if not passwords.is_right(user_id, str(password), encoded) or account is None:
        raise ObjectNotFound(_WRONG)
    if account.is_closed and not principal.is_master:
        raise ObjectNotFound(_WRONG)
    if account.password_changed_at is not None:
        passwords.check_age(datetime.fromisoformat(account.password_changed_at))
    ignores = principal.is_master and given.get("ignoreEmailVerification") in (True, "true")
    if not ignores:
        _check_verified(account)
    return account


def _check_verified(account: _Account) -> None:
    settings = service_settings
    if settings.PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL and not account.email_verified:
        raise EmailNotFound("User email is not verified.")


def log_in(principal: Principal, given: Mapping[str, Any]) -> Wire:
    """Sign in with a password, and a second factor if the user has one."""
    account = _proven(principal, given)
    with transaction.atomic():
        lock(account.user_id)
        # Who changes the password at this moment ends all sessions, this one too.
        if not fetch(_STILL, (account.user_id, account.password_changed_at), prepare=True):
            raise ObjectNotFound(_WRONG)
        return _begin(principal, account.user_id, "password")


_STILL = (
    "SELECT FROM objects_password WHERE user_id = %s AND changed_at = %s::timestamptz FOR SHARE"
)


def verify_password(principal: Principal, given: Mapping[str, Any]) -> Wire:
    """The user whom the password is right for, without a session.

    A second factor is asked for as at a log-in: the answer shows the account.
    """
    return account_of(_proven(principal, given).user_id)


def _proven(principal: Principal, given: Mapping[str, Any]) -> _Account:
    account = check_password(principal, given)
    data = given.get("authData")
    if data is not None and not isinstance(data, dict):
        raise InvalidJSON("authData: expected an object of providers")
    _check_second_factor(account.user_id, data)
    # Only now: guesses at the second factor count as well.
    passwords.forget_guesses(account.user_id)
    return account


def _check_second_factor(user_id: str, auth_data: Mapping[str, Any] | None) -> None:
    if not second_factor.is_set_up(user_id):
        return
    given = (auth_data or {}).get(MFA)
    if not isinstance(given, dict) or not isinstance(given.get("token"), str):
        raise SecondFactorMissing
    second_factor.check(user_id, given["token"])


def sign_in_with_providers(principal: Principal, body: dict[str, Any]) -> Wire | None:
    """Sign in the user who has an identity that the body's ``authData`` proves; None if nobody has.

    In ``body`` the proofs are put in place of the data, for a sign-up with them: some count once.
    Raises ``AccountAlreadyLinked`` if they belong to more than one user.
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
    owners = {identities.user_of(name, one.id) for name, one in proven.items()} - {None}
    if not owners:
        return None
    if len(owners) > 1:
        raise AccountAlreadyLinked("this auth is already used")
    user_id = str(owners.pop())
    _check_second_factor(user_id, data)
    return _begin(principal, user_id, next(iter(proven)))


def log_in_proven(
    principal: Principal,
    user_id: str,
    provider: str,
    *,
    is_strong: bool,
    second_factor_token: str | None = None,
) -> Wire:
    """Sign in a user who is proven otherwise than by a password (a passkey), as ``log_in`` would.

    So not while the account is locked, closed, or waiting for its address to be verified. A second
    factor is asked for unless the proof was one of two factors already (``is_strong``). Call it in
    a transaction, after ``lock``.
    """
    account = _account(fetch(_BY_ID, (user_id,), prepare=True))
    if account is None or (account.is_closed and not principal.is_master):
        raise ObjectNotFound(_WRONG)
    passwords.check_not_locked(user_id)
    _check_verified(account)
    if not is_strong:
        check_second_factor(user_id, second_factor_token)
    return _begin(principal, user_id, provider)


def check_second_factor(user_id: str, token: str | None) -> None:
    """Raise ``SecondFactorMissing`` or ``InvalidSecondFactor`` unless this proves the user's
    second factor, or there is none."""
    _check_second_factor(user_id, None if token is None else {MFA: {"token": token}})


def log_in_as(principal: Principal, user_id: object) -> Wire:
    """A session of any user, for the master key."""
    if not principal.is_master:
        raise MasterKeyRequired
    if not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to login as another user.")
    if not isinstance(user_id, str) or not user_id:
        raise InvalidValue("userId must not be empty, null, or undefined")
    if not is_object_id(user_id):
        raise ObjectNotFound("user not found")
    return _begin(principal, user_id, "masterkey")


def _begin(principal: Principal, user_id: str, provider: str) -> Wire:
    if principal.is_master and not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to begin a session.")
    with transaction.atomic():
        lock(user_id)
        if triggers.has("_User", "before_login"):
            triggers.run(_occasion("before_login", principal, user_id))
        token = sessions.begin(
            user_id,
            action="login",
            provider=provider,
            installation_id=principal.installation_id,
        )
        if triggers.has("_User", "after_login"):
            triggers.run_after_commit(_occasion("after_login", principal, user_id))
    return {**account_of(user_id), "sessionToken": token}


def _occasion(event: Event, principal: Principal, user_id: str) -> Occasion:
    # Whoever signs in acts for themselves, not for a session that came along.
    caller = principal if principal.is_master else Principal(principal.authority, user_id=user_id)
    return Occasion(event, "_User", caller, object=account_of(user_id))


def lock(user_id: str) -> None:
    """Let nobody change or remove the user until the transaction ends: a session that begins
    meanwhile would outlive that. Whoever changes an account locks the user first, too."""
    lock = "SELECT FROM objects_user WHERE object_id = %s FOR KEY SHARE"
    if not fetch(lock, (user_id,), prepare=True):
        raise ObjectNotFound("user not found")


def account_of(user_id: str) -> Wire:
    """A user's object as its owner sees it."""
    user = wire_object(service.get(MASTER, "_User", user_id))
    return owners_view(Principal(Authority.CLIENT, user_id=user_id), user)


def owners_view(principal: Principal, user: Wire) -> Wire:
    """The object, and for its owner what only the owner sees besides."""
    user_id = user.get("objectId")
    if user_id != principal.user_id or principal.user_id is None:
        return user
    factor = second_factor.status(principal.user_id)
    if factor == second_factor.ENABLED:
        data = user.get("authData")
        user = {**user, "authData": {**(data if isinstance(data, dict) else {}), MFA: factor}}
    if principal.session_token is not None:
        user = {**user, "sessionToken": principal.session_token}
    return user


def log_out(principal: Principal) -> None:
    """End the caller's session, if there is one."""
    if principal.session_id is None:
        return
    session: Wire | None = None
    if triggers.has("_Session", "after_logout"):
        session = wire_object(service.get(MASTER, "_Session", principal.session_id))
    sessions.end(principal.session_id)
    if session is not None:
        triggers.run_after_commit(Occasion("after_logout", "_Session", principal, object=session))


def upgrade_session(principal: Principal) -> Wire:
    """Sessions have been revocable from the start, so a token to upgrade is never found."""
    if principal.user_id is None:
        raise InvalidSessionToken("Session token required.")
    raise ObjectNotFound("invalid session")


def challenge(given: Mapping[str, Any]) -> dict[str, Json]:
    """What providers ask the client to answer, by ``challengeData``."""
    asked = given.get("challengeData")
    if not isinstance(asked, dict) or not asked:
        raise OtherCause("Nothing to challenge.")
    answers: dict[str, Json] = {}
    for provider, data in asked.items():
        if not isinstance(data, dict):
            raise InvalidJSON(f"challengeData.{provider}: expected an object")
        answers[provider] = adapters.challenge(provider, data)
    return {"challengeData": answers}
