"""Access lists of objects, permissions of classes, and decisions by them.

Callers are known by their *ids*: ``*`` (everybody), the user's id, ``role:NAME`` for each role
that the user holds. The master key never comes here.

An object's access list (``ACL``) is kept as two lists of such ids. No list at all means
everybody, an empty one means the master key alone. A class's permissions (``CLP``) say who may
``find, get, count, create, update, delete, addField``, which fields of an object name users who
may, and which fields are hidden from whom.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from backend.kernel.errors import InvalidACL
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.access.class_permissions import (
    CURRENT_USER,
    EVERYBODY,
    NOBODY,
    READ_ACTIONS,
    USER_FIELD_PREFIX,
    Action,
    ClassPermissions,
)
from objects.core.names import FieldName, is_entity


@dataclass(frozen=True, slots=True)
class Acl:
    """An object's access list, each list sorted; None in place of one means everybody."""

    read_ids: tuple[str, ...] | None = None
    write_ids: tuple[str, ...] | None = None

    def to_wire(self) -> dict[str, Json] | None:
        """Return the wire form; None if the object has no access list."""
        if self.read_ids is None and self.write_ids is None:
            return None
        entries: dict[str, Json] = {}
        for permission, ids in (("read", self.read_ids), ("write", self.write_ids)):
            for entity in (EVERYBODY,) if ids is None else ids:
                entry = entries.setdefault(entity, {})
                assert isinstance(entry, dict)
                entry[permission] = True
        return entries


PUBLIC_ACL: Final = Acl()


def parse_acl(json: Json, place: str = "ACL") -> Acl:
    """Parse a client's access list; null is none. Raises ``InvalidACL`` if it is malformed.

    Entries that grant nothing are dropped: ``{"id": {"read": false}}`` is ``{}``.
    """
    if json is None:
        return PUBLIC_ACL
    if not isinstance(json, dict):
        raise InvalidACL(f"Invalid ACL. {place}: expected an object")
    read_ids: list[str] = []
    write_ids: list[str] = []
    for entity, entry in json.items():
        if not is_entity(entity):
            raise InvalidACL(
                f"Invalid ACL. {place}.{shown(entity)}: expected *, a user's id or role:NAME"
            )
        if not isinstance(entry, dict):
            raise InvalidACL(f"Invalid ACL. {place}.{shown(entity)}: expected an object")
        for permission, granted in entry.items():
            if permission not in ("read", "write") or not isinstance(granted, bool):
                raise InvalidACL(
                    f"Invalid ACL. {place}.{shown(entity)}.{shown(permission)}:"
                    " expected read or write, each true or false"
                )
            if granted:
                (read_ids if permission == "read" else write_ids).append(entity)
    return Acl(tuple(sorted(read_ids)), tuple(sorted(write_ids)))


def default_acl(permissions: ClassPermissions, user_id: str | None) -> Acl:
    """Return the access list of a new object that came without one."""
    if permissions.default_acl is None:
        return PUBLIC_ACL
    entries = dict(permissions.default_acl)
    own = entries.pop(CURRENT_USER, None)
    if own is not None and user_id is not None:
        entries[user_id] = own
    return parse_acl(entries)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The caller may. ``because`` is the granting entry: an id, ``requiresAuthentication``."""

    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class AllowedThrough:
    """The caller may with those objects only that name the user in one of these fields.

    A caller without a user is named by no object.
    """

    pointer_fields: tuple[FieldName, ...]


@dataclass(frozen=True, slots=True)
class NeedsAuthentication:
    """The caller may after logging in."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The caller may not."""


Decision: TypeAlias = Allowed | AllowedThrough | NeedsAuthentication | Denied

_EVERYBODY_MAY: Final = Allowed(EVERYBODY)
_LOGGED_IN_MAY: Final = Allowed("requiresAuthentication")
_NEEDS_AUTHENTICATION: Final = NeedsAuthentication()
_DENIED: Final = Denied()


def decide(
    permissions: ClassPermissions,
    action: Action,
    principal_ids: Collection[str],
    is_authenticated: bool,
    *,
    creating: bool = False,
) -> Decision:
    """Return whether a caller with these ids may do the action on the class.

    Fields that name users restrict logged-in users too (``requiresAuthentication``), but neither
    everybody (``*``) nor the users and roles that the rule names.

    ``creating`` is for ``addField``: a new object can't be reached through its own fields.
    """
    rule = permissions.rules.get(action, NOBODY)
    if EVERYBODY in rule.entities:
        return _EVERYBODY_MAY
    for entity in principal_ids:
        if entity in rule.entities:
            return Allowed(entity)
    if rule.requires_authentication and not is_authenticated:
        return _NEEDS_AUTHENTICATION
    if action == "create" or creating:
        return _LOGGED_IN_MAY if rule.requires_authentication else _DENIED
    user_fields = (
        permissions.read_user_fields if action in READ_ACTIONS else permissions.write_user_fields
    )
    through = tuple(dict.fromkeys((*rule.pointer_fields, *user_fields)))
    if through:
        return AllowedThrough(through)
    return _LOGGED_IN_MAY if rule.requires_authentication else _DENIED


def protected_fields(permissions: ClassPermissions, groups: Iterable[str]) -> frozenset[FieldName]:
    """Return the fields that are hidden from a caller who is in these groups.

    Groups are ``*``, ``authenticated``, ``role:X``, the user's id, and for one object
    ``userField:F`` for each field that names the user. A field is hidden when every one of the
    caller's groups that the class says something about hides it.
    """
    hidden: frozenset[FieldName] | None = None
    for group in groups:
        names = permissions.protected_fields.get(group)
        if names is not None:
            hidden = names if hidden is None else hidden & names
    return hidden or frozenset()


def protecting_user_fields(permissions: ClassPermissions) -> tuple[FieldName, ...]:
    """Return the fields F for which the class has a ``userField:F`` group."""
    return tuple(
        FieldName(group[len(USER_FIELD_PREFIX) :])
        for group in permissions.protected_fields
        if group.startswith(USER_FIELD_PREFIX)
    )
