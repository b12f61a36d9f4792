"""The gate: every way to a session passes it, and only it creates sessions.

Each way to a session (``Way``) lists the conditions that callers have to meet; docs/sign-in.md has
them as a table. ``examine`` checks all of them and may take long. ``enter`` locks the user, checks
again what may have changed, runs the triggers and creates the session.

``creation`` creates sessions and requires a ``SessionPermit``. import-linter allows only
this module to import it, and tests/security/test_ways_to_a_session.py lists every caller of this
module.

Rate limits are checked by the transports (``backend.limits``), before the request gets here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import transaction

from backend.kernel.errors import (
    EmailNotFound,
    MasterKeyRequired,
    ObjectNotFound,
    OperationForbidden,
)
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from objects import triggers
from objects.core.names import USER
from objects.triggers import Event, Occasion
from objects.users import passkeys, rows
from objects.users.accounts import passwords, second_factor
from objects.users.accounts.owner_view import account_of
from objects.users.rows import Account
from objects.users.sessions import creation
from objects.users.sessions.creation import SessionPermit

WRONG: Final = "Invalid username/password."


@dataclass(frozen=True, slots=True)
class Way:
    """A way to a session, with the conditions that callers have to meet.

    ``action`` is stored in the session's ``createdWith``. ``is_sign_up``: the account is new. With
    ``checks_closed``, only the master key gets a session of a closed account. With
    ``needs_address``, an account without an e-mail address is treated like one whose address isn't
    verified. The read-only master key is always refused.
    """

    action: str
    is_sign_up: bool = False
    needs_master: bool = False
    checks_closed: bool = True
    checks_lock: bool = False
    checks_address: bool = False
    needs_address: bool = False
    checks_password: bool = False
    asks_second_factor: bool = False
    runs_triggers: bool = False


# No ``checks_lock``: ``passwords.claim_guess`` has checked the lock already, and this guess itself
# may have locked the account for later ones.
PASSWORD: Final = Way(
    "login",
    checks_address=True,
    needs_address=True,
    checks_password=True,
    asks_second_factor=True,
    runs_triggers=True,
)
# Providers, wallets and anonymous users: many of these accounts never have an address.
PROVIDER: Final = Way(
    "login", checks_lock=True, checks_address=True, asks_second_factor=True, runs_triggers=True
)
PASSKEY: Final = Way(
    "login",
    checks_lock=True,
    checks_address=True,
    needs_address=True,
    asks_second_factor=True,
    runs_triggers=True,
)
# The authenticator has verified the user, so the passkey counts as two factors.
VERIFIED_PASSKEY: Final = Way(
    "login", checks_lock=True, checks_address=True, needs_address=True, runs_triggers=True
)
MASTER_KEY: Final = Way("login", needs_master=True, checks_closed=False, runs_triggers=True)
# The master key has linked the account to a provider.
MASTER_LINK: Final = Way("login", needs_master=True, checks_closed=False)
SIGN_UP: Final = Way("signup", is_sign_up=True, checks_address=True, needs_address=True)
# Parse calls signing up by a provider a login.
PROVIDER_SIGN_UP: Final = Way("login", is_sign_up=True, checks_address=True)
PASSKEY_SIGN_UP: Final = Way("signup", is_sign_up=True, checks_address=True)
# The caller has a session already and creates another one.
SESSION: Final = Way("create", checks_lock=True, checks_address=True)
UPGRADE: Final = Way("upgrade", checks_lock=True, checks_address=True)
MASTER_SESSION: Final = Way("create", needs_master=True, checks_closed=False)
NEW_PASSWORD: Final = Way("login")


@dataclass(frozen=True, slots=True)
class Examined:
    """A caller that meets the conditions of a way, including the second factor."""

    principal: Principal
    account: Account
    way: Way


def _account(user_id: str) -> Account:
    account = rows.account_of_id(user_id)
    if account is None:
        raise ObjectNotFound("user not found")
    return account


def is_closed(user_id: str) -> bool:
    """Whether the account is closed: its access list is empty, so not even its user has access."""
    return _account(user_id).is_closed


def lock(user_id: str) -> None:
    """Lock the user's row until the transaction ends.

    Starting a session and changing an account both lock the user's row first, so a session can't
    outlive a change that ends all sessions. Raises ``ObjectNotFound``.
    """
    if not rows.lock_account(user_id):
        raise ObjectNotFound("user not found")


# -- The conditions -------------------------------------------------------------------------------


def examine(
    principal: Principal,
    user_id: str,
    way: Way,
    *,
    account: Account | None = None,
    second_factor_token: Json = None,
    ignores_address: bool = False,
) -> Examined:
    """Check all conditions of a way. The second factor comes last, since its token works once.

    ``account`` is the user's account, if the caller has just read it. ``ignores_address`` skips the
    check of the address, for the master key. Raises ``MasterKeyRequired``, ``ObjectNotFound`` (no
    such user, closed, locked, password too old), ``EmailNotFound`` (address not verified),
    ``SecondFactorMissing`` and ``InvalidSecondFactor``.
    """
    account = account or _account(user_id)
    _check_account(principal, account, way, ignores_address=ignores_address)
    if way.asks_second_factor:
        check_second_factor(user_id, second_factor_token)
    return Examined(principal, account, way)


def _check_account(
    principal: Principal, account: Account, way: Way, *, ignores_address: bool
) -> None:
    if way.needs_master and not principal.has_master_key:
        raise MasterKeyRequired
    if way.checks_closed and account.is_closed and not principal.is_master:
        raise ObjectNotFound(WRONG)
    if way.checks_lock:
        passwords.check_not_locked(account.user_id)
    if way.checks_password and account.password_changed_at is not None:
        passwords.check_age(datetime.fromisoformat(account.password_changed_at))
    if not ignores_address and _awaits_verification(account, way):
        raise EmailNotFound("User email is not verified.")


def _awaits_verification(account: Account, way: Way) -> bool:
    settings = service_settings
    prevented = settings.PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL
    if way.is_sign_up:
        prevented = prevented or (
            settings.VERIFY_EMAIL and settings.PREVENT_SIGNUP_WITH_UNVERIFIED_EMAIL
        )
    if not (prevented and way.checks_address) or account.address_is_verified:
        return False
    return account.has_address or way.needs_address


def check_second_factor(user_id: str, token: Json) -> None:
    """Raise ``SecondFactorMissing`` or ``InvalidSecondFactor`` unless the token proves the user's
    second factor, or the user has none."""
    if second_factor.is_set_up(user_id):
        second_factor.check(user_id, token)


# -- Entering -------------------------------------------------------------------------------------


def enter(examined: Examined, provider: str | None = None) -> str:
    """Create the session of an examined caller; return its token.

    ``provider`` is stored in ``createdWith``. Raises ``ObjectNotFound`` if the account was closed
    or deleted since ``examine`` or, for a sign-in by password, given another one;
    ``OperationForbidden`` for the read-only master key; and the error of a ``beforeLogin`` trigger
    that refuses.
    """
    principal, user_id = examined.principal, examined.account.user_id
    with transaction.atomic():
        permit = _admit(examined, provider)
        if examined.way.runs_triggers and triggers.has(USER, "before_login"):
            triggers.run(_occasion("before_login", principal, user_id))
        token = creation.create(permit)
        if examined.way.runs_triggers and triggers.has(USER, "after_login"):
            triggers.run_after_commit(_occasion("after_login", principal, user_id))
    return token


def enter_new(principal: Principal, user_id: str, provider: str | None) -> str | None:
    """Create the session of a user who has just signed up; return its token.

    Returns None if the address has to be verified first. ``provider`` is None for a password. Call
    this in the transaction that creates the user.
    """
    if provider is None:
        way = SIGN_UP
    else:
        way = PASSKEY_SIGN_UP if provider == passkeys.PROVIDER else PROVIDER_SIGN_UP
    try:
        examined = examine(principal, user_id, way)
    except EmailNotFound:
        return None
    return enter(examined, provider or "password")


def admit_to_create(principal: Principal, user_id: str) -> SessionPermit:
    """Admit a caller that creates a ``_Session`` object of this user, in its transaction."""
    if principal.is_master:
        _check_may_write(principal)
        # The user may be missing: imports may store sessions before their users.
        way = MASTER_SESSION
        return SessionPermit(user_id, way.action, None, principal.installation_id)
    return _admit(examine(principal, user_id, SESSION), None)


def token_for(session_id: str, permit: SessionPermit, installation_id: str | None) -> str:
    """Set and return the token of the admitted caller's ``_Session`` object, once it is stored.

    The user's earlier session of the installation ends.
    """
    return creation.give_token(session_id, permit, installation_id)


def _admit(examined: Examined, provider: str | None) -> SessionPermit:
    principal, before, way = examined.principal, examined.account, examined.way
    _check_may_write(principal)
    lock(before.user_id)
    account = _account(before.user_id)
    # A password change since ``examine`` has ended all sessions, so this one must not start.
    if way.checks_password and account.password_changed_at != before.password_changed_at:
        raise ObjectNotFound(WRONG)
    if way.checks_closed and account.is_closed and not principal.is_master:
        raise ObjectNotFound(WRONG)
    return SessionPermit(account.user_id, way.action, provider, principal.installation_id)


def _check_may_write(principal: Principal) -> None:
    if principal.is_master and not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to begin a session.")


def _occasion(event: Event, principal: Principal, user_id: str) -> Occasion:
    # The trigger's user is the one who signs in, even if the request carries another session.
    caller = principal
    if not principal.is_master:
        caller = Principal(
            principal.authority, user_id=user_id, installation_id=principal.installation_id
        )
    return Occasion(event, USER, caller, object=account_of(user_id))
