"""What ``_User`` asks of its objects.

A user is saved like any object, by any transport; passwords and proofs of other services are
taken out of the body here and never get into the object. Signing up begins a session, and so does
a new password, which ends the others (docs/users.md).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from backend.kernel.errors import (
    AccountAlreadyLinked,
    EmailTaken,
    InvalidJSON,
    InvalidKeyName,
    ServiceError,
    UnsupportedService,
    UsernameTaken,
)
from backend.kernel.json_types import Json, Wire
from backend.settings.conf import service_settings
from objects.access.policy import refused_account
from objects.core.values import equal
from objects.rules import Change, Rules, TransferredObject
from objects.users import adapters, internal_fields, passkeys, rows
from objects.users.accounts import master_fields, passwords, second_factor, transfers
from objects.users.accounts.second_factor import MFA
from objects.users.adapters import identities
from objects.users.email import delivery
from objects.users.internal_fields import InternalFields
from objects.users.names import (
    check_email,
    check_new_email,
    check_new_username,
    check_username,
    stored_key,
)
from objects.users.passkeys import keys
from objects.users.sessions import gate, tokens


@dataclass
class UserChange(Change):
    """A write to a user, with what ``prepare`` has proven of it."""

    password: str | None = field(default=None, repr=False)
    """A new password, which later steps compare with the policy and the history."""
    encoded: str | None = field(default=None, repr=False)
    """The new password's hash."""
    identities: dict[str, adapters.ProviderIdentity | None] = field(default_factory=dict)
    """Proven identities by provider; None removes the identity from the user."""
    sets_second_factor: bool = False
    second_factor: Json = field(default=None, repr=False)
    """What ``authData.mfa`` asks for."""
    is_new_email: bool = False
    internal: InternalFields | None = None
    """What the maintenance key sets apart from the object."""


class UserRules(Rules[UserChange]):
    """The rules of ``_User``."""

    change_type = UserChange

    def check_request(self, change: UserChange) -> None:
        if change.principal.is_maintenance:
            change.internal = internal_fields.take(change.fields)
        # Before triggers: what server code sets for a client is the deployment's own decision.
        principal, fields = change.principal, change.fields
        if not principal.may_write_as_master:
            master_fields.check(fields)
            if not change.creating and principal.user_id != change.object_id:
                _check_fields_of_others(change)
        # Outside the transaction, since providers may be slow.
        _take_identities(change)

    def planned(self, change: UserChange) -> Wire:
        auth_data = _linked(change)
        return {"authData": auth_data} if auth_data else {}

    def prepare(self, change: UserChange) -> None:
        fields = change.fields
        # Responses to the user contain the token, so SDKs may send it back. Stored, it would be
        # public.
        for name in [name for name in fields if name.partition(".")[0] == "sessionToken"]:
            del fields[name]
        _take_identities(change)
        _take_username(change)
        _take_email(change)
        if change.internal is not None and "password" not in fields:
            change.encoded = change.internal.encoded
        needs_password = change.creating and not change.identities and change.encoded is None
        if "password" in fields or needs_password:
            password = passwords.check_form(fields.pop("password", None))
            passwords.check_policy(password, fields.get("username"))
            change.password = password
            change.encoded = passwords.encode(password)

    # -- Signing up -------------------------------------------------------------------------------

    def before_create(self, change: UserChange) -> None:
        fields = change.fields
        _check_new_names(fields, {})
        if change.identities:
            fields["authData"] = _linked(change)
        if service_settings.VERIFY_EMAIL and fields.get("email") is not None:
            fields.setdefault("emailVerified", False)
        requested = fields.get("ACL")
        acl = dict(requested) if isinstance(requested, dict) and "__op" not in requested else {}
        if "ACL" not in fields and not service_settings.ENFORCE_PRIVATE_USERS:
            acl["*"] = {"read": True}
        # Users always keep access to their own account.
        acl[change.object_id] = {"read": True, "write": True}
        fields["ACL"] = acl if requested is None or isinstance(requested, dict) else requested

    def after_create(self, change: UserChange) -> None:
        _keep_keys(change)
        if change.encoded is not None:
            passwords.store(change.object_id, change.encoded)
        identities.add(change.object_id, change.identities)
        _set_up_second_factor(change)
        self._store_internal(change)
        if change.internal is not None:
            return  # an import sends no email and starts no session
        delivery.email_given(change.object_id, change.fields.get("email"))
        provider = ",".join(change.identities) or None
        token = gate.enter_new(change.principal, change.object_id, provider)
        if token is not None:
            change.shown["sessionToken"] = token

    # -- Changing ---------------------------------------------------------------------------------

    def before_update(self, change: UserChange) -> None:
        assert change.before is not None
        fields, before = change.fields, change.before
        _check_new_names(fields, before)
        if change.password is not None:
            username = fields.get("username", before.get("username"))
            if isinstance(username, str):
                passwords.check_policy(change.password, username)
            passwords.check_history(change.object_id, change.password)
        if change.identities:
            fields["authData"] = _linked(change) or None
        requested = fields.get("ACL")
        if isinstance(requested, dict) and not change.principal.may_write_as_master:
            entries = {} if "__op" in requested else requested
            fields["ACL"] = entries | {change.object_id: {"read": True, "write": True}}
        if "email" in fields and fields["email"] != before.get("email"):
            change.is_new_email = True
            if before.get("emailVerified") or service_settings.VERIFY_EMAIL:
                # The master key may set ``emailVerified`` itself.
                fields.setdefault("emailVerified", False)

    def after_update(self, change: UserChange) -> None:
        _keep_keys(change)
        identities.replace(change.object_id, change.identities)
        if change.identities.get(passkeys.PROVIDER, ...) is None:
            keys.remove_all(change.object_id)
        _set_up_second_factor(change)
        if change.is_new_email:
            delivery.email_replaced(change.object_id)
            if change.internal is None:  # an import sends no email
                delivery.email_given(change.object_id, change.fields.get("email"))
        if change.encoded is not None:
            self._change_password(change, change.encoded)
        self._store_internal(change)
        if "ACL" in change.fields and gate.is_closed(change.object_id):
            tokens.end_all_of(change.object_id)

    def _change_password(self, change: UserChange, encoded: str) -> None:
        passwords.store(change.object_id, encoded)
        delivery.forget_tokens(change.object_id)
        if not service_settings.REVOKE_SESSIONS_ON_PASSWORD_CHANGE:
            return
        tokens.end_all_of(change.object_id)
        if change.principal.user_id == change.object_id:
            examined = gate.examine(change.principal, change.object_id, gate.NEW_PASSWORD)
            change.shown["sessionToken"] = gate.enter(examined, "password")

    def _store_internal(self, change: UserChange) -> None:
        if change.internal is None:
            return
        email = change.fields.get("email", (change.before or {}).get("email"))
        address = email if isinstance(email, str) else None
        internal_fields.store(change.object_id, change.internal, address)

    def add_internal_fields(self, objects: Sequence[Wire]) -> None:
        internal_fields.add_to(objects)

    # -- Removing ---------------------------------------------------------------------------------

    def after_delete(self, change: UserChange) -> None:
        tokens.end_all_of(change.object_id)

    def after_purge(self) -> None:
        tokens.end_all()

    # -- Transferring -----------------------------------------------------------------------------

    def before_transfer(self, obj: TransferredObject) -> TransferredObject:
        return transfers.stored_form(obj)

    def after_transfer(
        self, stored: Sequence[TransferredObject], skipped: Sequence[TransferredObject]
    ) -> None:
        if stored:
            transfers.store(stored)
        if skipped:
            transfers.add_missing_passwords(skipped)

    def error_for(self, constraint: str) -> ServiceError | None:
        if constraint == "objects_user_username_unique":
            return UsernameTaken("Account already exists for this username.")
        if constraint == "objects_user_email_unique":
            return EmailTaken("Account already exists for this email address.")
        if constraint == "objects_identity_pkey":
            return AccountAlreadyLinked("this auth is already used")
        return None


# What proves who an account belongs to, and who may use it.
_OF_OWNERS: Final = frozenset({"username", "password", "email", "authData", "ACL"})


def _check_fields_of_others(change: UserChange) -> None:
    """Raise ``SessionMissing`` if a caller other than the user changes what a login depends on.

    An access list may let others change an account, but not take it over.
    """
    if any(name.partition(".")[0] in _OF_OWNERS for name in change.fields):
        raise refused_account(change.principal, "update", change.object_id)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _is_removal(value: object) -> bool:
    return value in (None, "") or (isinstance(value, dict) and value.get("__op") == "Delete")


def _take_username(change: UserChange) -> None:
    fields = change.fields
    if "username" in fields:
        check_username(fields["username"])
    elif change.creating and change.identities:
        fields["username"] = change.shown["username"] = secrets.token_urlsafe(18)
    elif change.creating:
        check_username(None)


def _take_email(change: UserChange) -> None:
    fields = change.fields
    if "email" not in fields:
        return
    if _is_removal(fields["email"]):
        fields["email"] = None
    else:
        check_email(fields["email"])


def _check_new_names(fields: Mapping[str, Any], before: Mapping[str, Json]) -> None:
    """Check what is new of a user's name and address; stored ones may be older than the rules."""
    for name, check in (("username", check_new_username), ("email", check_new_email)):
        if fields.get(name) is not None and fields[name] != before.get(name):
            check(fields[name])


def _keep_keys(change: UserChange) -> None:
    """Store the keys of a new name and address. A taken one violates the unique constraint."""
    before = change.before or {}
    names: tuple[Literal["username", "email"], ...] = ("username", "email")
    for name in names:
        if name in change.fields and (change.creating or change.fields[name] != before.get(name)):
            rows.store_account_key(change.object_id, name, stored_key(change.fields[name]))


# -- authData -------------------------------------------------------------------------------------


def _take_identities(change: UserChange) -> None:
    """Take ``authData`` out of the body and let the providers prove what is new of it.

    ``null`` for a provider takes its identity off the user. SDKs send all of ``authData`` back, so
    a part that repeats what is stored changes nothing.
    """
    if any(name.startswith("authData.") for name in change.fields):
        raise InvalidKeyName("authData is set as a whole: each provider has to prove its part.")
    if "authData" not in change.fields:
        return
    auth_data = change.fields.pop("authData")
    if auth_data is None:
        raise UnsupportedService
    if not isinstance(auth_data, dict) or "__op" in auth_data:
        raise InvalidJSON("authData: expected an object of providers")
    proofs = {} if change.creating else rows.auth_data(change.object_id)
    proofs |= {name: item.to_wire() for name, item in change.identities.items() if item is not None}
    proven: dict[str, adapters.ProviderIdentity | None] = {}
    for provider, data in auth_data.items():
        if provider == MFA:
            if not second_factor.is_status(data):
                change.sets_second_factor, change.second_factor = True, data
        elif data is None:
            proven[provider] = None
        elif not _repeats(data, proofs.get(provider)):
            proven[provider] = verified(provider, data)
    if change.creating:
        proven = {name: identity for name, identity in proven.items() if identity is not None}
    change.identities = {**change.identities, **proven}


def _repeats(data: object, proof: Json) -> bool:
    """Whether this part of ``authData`` has only values that are proven or stored already."""
    if not isinstance(data, dict) or not isinstance(proof, dict) or not data:
        return False
    return all(name in proof and equal(proof[name], value) for name, value in data.items())


def _linked(change: UserChange) -> dict[str, Json]:
    """Return the ``authData`` that the user has after the change."""
    linked = dict(_mapping((change.before or {}).get("authData")))
    for name, identity in change.identities.items():
        linked.pop(name, None)
        if identity is not None:
            linked[name] = identity.to_wire()
    return linked


def verified(provider: str, data: object) -> adapters.ProviderIdentity:
    """The identity that this part of ``authData`` proves."""
    if isinstance(data, adapters.ProviderIdentity):
        return data  # proven before: some proofs count once
    if not isinstance(data, dict):
        raise InvalidJSON(f"authData.{provider}: expected an object")
    return adapters.verify(provider, data)


def _set_up_second_factor(change: UserChange) -> None:
    if not change.sets_second_factor:
        return
    data = change.second_factor
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise InvalidJSON("authData.mfa: expected an object")
    if "secret" in data:
        recovery = second_factor.set_up(change.object_id, data)
        change.shown["authDataResponse"] = {MFA: {"recovery": ", ".join(recovery)}}
    elif change.principal.may_write_as_master or not second_factor.is_set_up(change.object_id):
        second_factor.remove(change.object_id)
    else:
        # A session alone doesn't take it off: it is what a stolen session can't get past.
        second_factor.check(change.object_id, data.get("old"))
        second_factor.remove(change.object_id)
