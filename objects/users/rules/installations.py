"""What ``_Installation`` asks of its objects: one object for one app on one device.

An app that registers again, with the ``installationId`` it has or on a device that is known by its
``deviceToken``, changes the object that is there. A device token belongs to one installation: one
that registers with it takes it over, and the objects that had it are removed, as far as the caller
may change them. Two objects that turn out to be the same installation become one; what only the
removed one had is kept (docs/users.md).
"""

from __future__ import annotations

from typing import Any

from backend.kernel.connections.advisory_locks import unique_value
from backend.kernel.errors import (
    AmbiguousDeviceToken,
    FieldNotChangeable,
    IncorrectType,
    MissingDeviceField,
    ObjectNotFound,
    OperationForbidden,
)
from backend.kernel.json_types import Wire
from objects.access.policy import writable
from objects.access.scope import Scope
from objects.core.names import INSTALLATION, ObjectId
from objects.core.query.tree import Everything
from objects.database import locks
from objects.definitions import registry
from objects.rules import Change, Rules
from objects.sql.tables import ClassTable
from objects.storage import updates, writes
from objects.users import rows

_CLASS = INSTALLATION
_IDS = ("installationId", "deviceToken")
# An operator or a query in their place would reach the statements that look for other objects.
_TEXTS = (*_IDS, "deviceType", "appIdentifier")
_APPLE_TOKEN_LENGTH = 64
_NOT_MERGED = frozenset({"objectId", "createdAt", "updatedAt"})


class InstallationRules(Rules[Change]):
    """See the module."""

    def prepare(self, change: Change) -> None:
        fields = change.fields
        for name in _TEXTS:
            if name in fields:
                _normalise(fields, name, creating=change.creating)
        principal = change.principal
        if change.creating and not principal.is_master and principal.installation_id:
            fields.setdefault("installationId", principal.installation_id.lower())
        if change.creating and not any(name in fields for name in _IDS):
            raise MissingDeviceField(
                "at least one ID field (deviceToken, installationId) must be specified in this"
                " operation"
            )

    def begin(self, change: Change) -> None:
        # Registrations of one device wait for each other, in the same order everywhere.
        for name in sorted(_IDS):
            value = _text(change, name)
            if value:
                locks.lock_transaction(unique_value(_CLASS, name, value))

    def before_create(self, change: Change) -> None:
        same_id, same_token = _matches(change)
        if same_id is None:
            self._register(change, same_token)
            return
        change.instead = same_id
        self._take_token(change, same_id, same_token)

    def _register(self, change: Change, same_token: list[Wire]) -> None:
        """Register an installation that no object has the id of."""
        if "deviceType" not in change.fields:
            raise MissingDeviceField("deviceType must be specified in this operation")
        installation_id = _text(change, "installationId")
        if len(same_token) == 1 and not (installation_id and same_token[0].get("installationId")):
            change.instead = same_token[0]
        elif same_token and not installation_id:
            raise AmbiguousDeviceToken(
                "Must specify installationId when deviceToken matches multiple Installation objects"
            )
        else:
            _take_over(change, same_token)

    def before_update(self, change: Change) -> None:
        assert change.before is not None
        before = change.before
        _check_ids(change.fields, before)
        if not any(_text(change, name) for name in _IDS):
            return
        same_id, same_token = _matches(change)
        remaining = [item for item in same_token if item["objectId"] != before["objectId"]]
        if same_id is None or same_id["objectId"] == before["objectId"]:
            self._take_token(change, before, remaining)
        else:
            # Two objects turn out to be one installation.
            change.instead = same_id
            self._take_token(change, same_id, remaining or same_token)
            if change.instead["objectId"] != before["objectId"]:
                _merge(change, before, change.instead)
        if change.instead is not None and change.instead["objectId"] != before["objectId"]:
            change.shown["objectId"] = change.instead["objectId"]

    def _take_token(self, change: Change, same_id: Wire, same_token: list[Wire]) -> None:
        """Give a known installation the token that others have."""
        token = _text(change, "deviceToken")
        if token is None:
            return
        has_it = same_id.get("deviceToken") == token
        if not has_it and len(same_token) == 1 and not same_token[0].get("installationId"):
            # A device that was known by its token alone turns out to be this installation.
            _merge(change, same_id, same_token[0])
            change.instead = same_token[0]
        else:
            _take_over(change, same_token)


def _normalise(fields: dict[str, Any], name: str, *, creating: bool) -> None:
    value = fields[name]
    if value in (None, "") or (isinstance(value, dict) and value.get("__op") == "Delete"):
        if creating:
            del fields[name]
        else:
            fields[name] = {"__op": "Delete"}
    elif not isinstance(value, str):
        raise IncorrectType(f"schema mismatch for {_CLASS}.{name}; expected String")
    elif name == "installationId" or (name == "deviceToken" and len(value) == _APPLE_TOKEN_LENGTH):
        fields[name] = value.lower()


def _text(change: Change, name: str) -> str | None:
    value = change.fields.get(name)
    return value if isinstance(value, str) else None


def _check_ids(fields: dict[str, Any], before: Wire) -> None:
    """Raise ``FieldNotChangeable`` if the update would make another installation of the object."""
    fixed = ["installationId", "deviceType"]
    if not (before.get("installationId") or isinstance(fields.get("installationId"), str)):
        fixed.append("deviceToken")  # all that the object is known by
    for name in fixed:
        if before.get(name) and name in fields and fields[name] != before[name]:
            raise FieldNotChangeable(f"{name} may not be changed in this operation")


def _matches(change: Change) -> tuple[Wire | None, list[Wire]]:
    """The object with the installation id that was given, and the others with the token; locked."""
    installation_id, token = (_text(change, name) for name in _IDS)
    table = _table()
    same_id, same_token = None, []
    for object_id in rows.lock_installations(installation_id, token):
        record = updates.lock(table, object_id, Everything(), Scope(change.principal))
        assert record is not None, "it is locked already"
        installation = record.object()
        if installation_id is not None and installation.get("installationId") == installation_id:
            same_id = installation
        else:
            same_token.append(installation)
    return same_id, same_token


def _take_over(change: Change, same_token: list[Wire]) -> None:
    """Remove the objects that have had the token; those of another app have one of their own."""
    app = _text(change, "appIdentifier")
    for other in same_token:
        if app is None or other.get("appIdentifier") == app:
            _remove(change, other)


def _merge(change: Change, removed: Wire, survivor: Wire) -> None:
    """Remove an object; what only it had goes to the other one."""
    if not _remove(change, removed):
        raise ObjectNotFound
    named = {name.partition(".")[0] for name in change.fields}
    for name, value in removed.items():
        is_relation = isinstance(value, dict) and value.get("__type") == "Relation"
        if not (name in survivor or name in named or name in _NOT_MERGED or is_relation):
            change.fields[name] = value


def _remove(change: Change, installation: Wire) -> bool:
    """Remove an object if the caller may change it; whether it is gone."""
    table, object_id = _table(), ObjectId(str(installation["objectId"]))
    try:
        condition = writable(change.principal, table, "update", object_id)
    except (ObjectNotFound, OperationForbidden):
        return False
    return writes.delete(table, object_id, condition, Scope(change.principal))


def _table() -> ClassTable:
    table = registry.find(_CLASS)
    assert table is not None, "the class is offered by this application"
    return table
