"""What ``_Session`` asks of its objects: users see and end their own, and change nothing that
says whose a session is, how it began or how long it lasts (docs/users.md)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from backend.kernel.errors import IncorrectType, InvalidKeyName, InvalidSessionToken
from backend.kernel.json_types import Wire
from backend.kernel.texts.shown import shown
from objects.access.protection import fields_hidden_somewhere
from objects.core.names import SESSION, is_object_id
from objects.core.values import date, pointer, wire_time
from objects.definitions import registry
from objects.rules import Change, Rules, TransferredObject
from objects.users.sessions import gate, tokens, transfers
from objects.users.sessions.gate import SessionPermit

# What a client that creates a session may send and the service sets all the same.
_SET_BY_SERVICE = ("user", "sessionToken", "expiresAt", "createdWith")
_FIXED = ("user", "installationId", "sessionToken", "expiresAt", "createdWith")
_BY_MASTER_KEY = ("user", "installationId", "expiresAt", "createdWith")


@dataclass
class SessionChange(Change):
    """A write to a session."""

    permit: SessionPermit | None = None
    """What the gate has admitted a new session with."""


class SessionRules(Rules[SessionChange]):
    """The rules of ``_Session``."""

    change_type = SessionChange

    def check_request(self, change: SessionChange) -> None:
        if change.creating and not change.principal.is_master:
            for name in _SET_BY_SERVICE:
                change.fields.pop(name, None)

    def prepare(self, change: SessionChange) -> None:
        principal, fields = change.principal, change.fields
        is_master = principal.may_write_as_master
        if "ACL" in fields and not is_master:
            raise InvalidKeyName("Cannot set ACL on a Session.")
        if (
            not change.creating
            and principal.user_id is not None
            and fields.get("user") == pointer("_User", principal.user_id)
        ):
            del fields["user"]  # SDKs send back what they have read
        allowed: Collection[str] = ()
        if is_master:
            allowed = _BY_MASTER_KEY
        elif change.creating:
            allowed = ("installationId",)
        for name in fields:
            # ``user.objectId`` is a part of ``user``.
            if name.partition(".")[0] in _FIXED and name not in allowed:
                raise InvalidKeyName(f"Invalid key name: {shown(name)}")

    def before_create(self, change: SessionChange) -> None:
        principal, fields = change.principal, change.fields
        installation_id = fields.get("installationId")
        if installation_id is not None and not isinstance(installation_id, str):
            raise IncorrectType("installationId: expected a string")
        if principal.user_id is not None:
            fields["user"] = pointer("_User", principal.user_id)
        owner = fields.get("user")
        if not isinstance(owner, dict) or owner.get("className") != "_User":
            raise InvalidSessionToken("Session token required.")
        user_id = str(owner.get("objectId"))
        change.permit = gate.admit_to_create(principal, user_id)
        fields.setdefault("expiresAt", date(wire_time(tokens.expiry())))
        if not principal.is_master or "createdWith" not in fields:
            fields["createdWith"] = tokens.created_with("create", None)
        fields.setdefault("ACL", {user_id: {"read": True, "write": True}})
        if principal.installation_id is not None and not principal.is_master:
            fields.setdefault("installationId", principal.installation_id)
        table = registry.find(SESSION)
        assert table is not None, "the class is offered by this application"
        hidden = fields_hidden_somewhere(principal, table)
        visible = [name for name in ("user", "expiresAt", "createdWith") if name not in hidden]
        change.shown.update({name: fields[name] for name in visible})

    def after_create(self, change: SessionChange) -> None:
        assert change.permit is not None
        installation_id = change.fields.get("installationId")
        token = gate.token_for(change.object_id, change.permit, installation_id)
        change.shown["sessionToken"] = token

    def before_transfer(self, obj: TransferredObject) -> TransferredObject:
        owner = obj.fields.get("user")
        if not isinstance(owner, dict) or not is_object_id(str(owner.get("objectId"))):
            raise InvalidSessionToken("Session token required.")
        fields = {name: value for name, value in obj.fields.items() if name != "sessionToken"}
        entry: Wire = {"read": True, "write": True}
        return replace(obj, fields=fields, acl={str(owner["objectId"]): entry})

    def after_transfer(
        self, stored: Sequence[TransferredObject], skipped: Sequence[TransferredObject]
    ) -> None:
        transfers.store_tokens(
            {obj.object_id: obj.session_token for obj in stored if obj.session_token is not None}
        )
