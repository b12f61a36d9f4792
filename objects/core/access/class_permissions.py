"""The permissions of a class (``classLevelPermissions``): their form and what makes them valid.

They say who may ``find, get, count, create, update, delete, addField``, which fields of an
object name users who may, which fields are hidden from whom, and the access list of new objects.
``access`` decides by them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from backend.kernel.errors import InvalidJSON
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown, shown_value
from objects.core.names import (
    ROLE_PREFIX,
    ClassName,
    FieldName,
    is_auto_id,
    is_entity,
    is_field_name,
)

EVERYBODY: Final = "*"
CURRENT_USER: Final = "currentUser"
AUTHENTICATED: Final = "authenticated"
USER_FIELD_PREFIX: Final = "userField:"

Action: TypeAlias = Literal["find", "get", "count", "create", "update", "delete", "addField"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
READ_ACTIONS: Final = frozenset({"find", "get", "count"})
OBJECT_WRITES: Final[tuple[Action, ...]] = ("create", "update", "delete")

ADD_FIELD: Final[Action] = "addField"

Access: TypeAlias = Literal["read", "write"]
"""What the public may be let do, and closed out of, as a whole."""
ACCESSES: Final[tuple[Access, ...]] = get_args(Access)
ACTIONS_OF: Final[Mapping[Access, tuple[Action, ...]]] = MappingProxyType(
    {"read": ("get", "find", "count"), "write": OBJECT_WRITES}
)

Openness: TypeAlias = Literal["open", "authenticated", "closed"]
"""Who may use a class: everybody as with Parse, logged-in users, or the master key alone."""
OPENNESS: Final[tuple[Openness, ...]] = get_args(Openness)


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may do one action: entities, anybody logged in, or users whom a field names."""

    entities: frozenset[str] = frozenset()
    requires_authentication: bool = False
    pointer_fields: tuple[FieldName, ...] = ()

    def to_wire(self) -> dict[str, Json]:
        wire: dict[str, Json] = dict.fromkeys(sorted(self.entities), True)
        if self.requires_authentication:
            wire["requiresAuthentication"] = True
        if self.pointer_fields:
            wire["pointerFields"] = [*self.pointer_fields]
        return wire


NOBODY: Final = Rule()
ANYBODY: Final = Rule(frozenset({EVERYBODY}))

_ALL_PUBLIC: Final[Mapping[Action, Rule]] = MappingProxyType(dict.fromkeys(ACTIONS, ANYBODY))
_NONE_PROTECTED: Final[Mapping[str, frozenset[FieldName]]] = MappingProxyType(
    {EVERYBODY: frozenset()}
)


@dataclass(frozen=True, slots=True)
class ClassPermissions:
    """The permissions of a class. The default lets everybody do everything.

    ``protected_fields`` maps a group (``*``, ``authenticated``, ``role:X``, a user's id,
    ``userField:F``) to the fields that are hidden from it; ``default_acl`` is given to new
    objects that come without an access list.
    """

    rules: Mapping[Action, Rule] = field(default_factory=lambda: _ALL_PUBLIC)
    read_user_fields: tuple[FieldName, ...] = ()
    write_user_fields: tuple[FieldName, ...] = ()
    protected_fields: Mapping[str, frozenset[FieldName]] = field(
        default_factory=lambda: _NONE_PROTECTED
    )
    default_acl: Mapping[str, Json] | None = None

    def to_wire(self) -> dict[str, Json]:
        """``classLevelPermissions`` as ``/schemas`` shows and takes them."""
        wire: dict[str, Json] = {
            action: self.rules.get(action, NOBODY).to_wire() for action in ACTIONS
        }
        if self.read_user_fields:
            wire["readUserFields"] = [*self.read_user_fields]
        if self.write_user_fields:
            wire["writeUserFields"] = [*self.write_user_fields]
        wire["protectedFields"] = {
            group: [*sorted(names)] for group, names in self.protected_fields.items()
        }
        if self.default_acl is not None:
            wire["ACL"] = dict(self.default_acl)
        return wire

    def public_actions(self, access: Access) -> tuple[Action, ...]:
        """Return what everybody may do with objects of the class, of the actions of an access."""
        return tuple(
            action
            for action in ACTIONS_OF[access]
            if EVERYBODY in self.rules.get(action, NOBODY).entities
        )

    def closed_to_public(self, access: Access, *, to_users: bool) -> ClassPermissions:
        """Return the permissions with reading, or writes and new fields, not open to everybody.

        Where everybody was allowed, logged-in users still are with ``to_users``. Roles, users and
        pointer fields that a rule names keep what they have.
        """
        rules = dict(self.rules)
        for action in (*ACTIONS_OF[access], *((ADD_FIELD,) if access == "write" else ())):
            rule = rules.get(action, NOBODY)
            if EVERYBODY in rule.entities:
                rules[action] = replace(
                    rule,
                    entities=rule.entities - {EVERYBODY},
                    requires_authentication=rule.requires_authentication or to_users,
                )
        return replace(self, rules=rules)

    def without_fields(self, removed: Collection[FieldName]) -> ClassPermissions:
        """Return the permissions of a class that lost these fields."""
        if not removed:
            return self

        gone = {f"{USER_FIELD_PREFIX}{name}" for name in removed}

        def kept(names: tuple[FieldName, ...]) -> tuple[FieldName, ...]:
            return tuple(name for name in names if name not in removed)

        return replace(
            self,
            rules={
                action: replace(rule, pointer_fields=kept(rule.pointer_fields))
                for action, rule in self.rules.items()
            },
            read_user_fields=kept(self.read_user_fields),
            write_user_fields=kept(self.write_user_fields),
            protected_fields={
                group: names.difference(removed)
                for group, names in self.protected_fields.items()
                if group not in gone
            },
        )


PUBLIC: Final = ClassPermissions()


# Creators of a role can add themselves to it, and functions, permissions and access lists that
# trust its name may exist before the role does.
_OF_ROLES: Final = ClassPermissions(rules={**_ALL_PUBLIC, "create": NOBODY, "addField": NOBODY})

Protection: TypeAlias = Mapping[str, frozenset[FieldName]]
"""Groups of callers, and the fields that are hidden from each."""

_default_protection: dict[str, Protection] = {"_User": {EVERYBODY: frozenset({FieldName("email")})}}


def set_default_protection(by_class: Mapping[str, Protection]) -> None:
    """Set the fields that classes protect in addition to what their permissions say."""
    _default_protection.clear()
    _default_protection.update(by_class)


def default_permissions(class_name: ClassName) -> ClassPermissions:
    """Return the permissions of a class for which none have been set."""
    permissions = _OF_ROLES if class_name == "_Role" else PUBLIC
    protected = _default_protection.get(class_name)
    return permissions if protected is None else replace(permissions, protected_fields=protected)


_TO_USERS: Final = Rule(requires_authentication=True)


def new_class_permissions(class_name: ClassName, openness: Openness) -> ClassPermissions:
    """Return the default permissions of a new class, by ``CLASS_PERMISSIONS_DEFAULT``.

    System classes have their own, regardless of the setting.
    """
    if openness == "open" or class_name.startswith("_"):
        return default_permissions(class_name)
    rule = _TO_USERS if openness == "authenticated" else NOBODY
    return ClassPermissions(rules=dict.fromkeys(ACTIONS, rule))


def parse_permissions(
    json: Json,
    user_fields: Collection[FieldName],
    all_fields: Collection[FieldName],
    default: ClassPermissions = PUBLIC,
    *,
    custom_ids: bool = True,
) -> ClassPermissions:
    """Parse ``classLevelPermissions``; an absent action is for the master key only.

    With ``custom_ids``, users may have ids that a client chose; otherwise letters and digits.
    ``user_fields`` are the fields of the class that may name users (pointers to ``_User`` and
    arrays), ``all_fields`` those that may be protected. What ``default``, the class's own
    permissions, hides from a group stays hidden from it until the group itself is named, and what
    it hides from everybody (``*``) stays hidden from callers who are in no other named group.
    Raises ``InvalidJSON`` as Parse does.
    """
    if not isinstance(json, dict):
        raise InvalidJSON("classLevelPermissions: expected an object")
    is_key = is_entity if custom_ids else _is_plain_entity
    rules: dict[Action, Rule] = dict.fromkeys(ACTIONS, NOBODY)
    hidden_by_default = {group: names for group, names in default.protected_fields.items() if names}
    permissions = ClassPermissions(protected_fields=hidden_by_default)
    for key, value in json.items():
        match key:
            case "readUserFields":
                names = _user_fields(_array(value, key), key, user_fields)
                permissions = replace(permissions, read_user_fields=names)
            case "writeUserFields":
                names = _user_fields(_array(value, key), key, user_fields)
                permissions = replace(permissions, write_user_fields=names)
            case "protectedFields":
                groups = _protected(_object(value, key), all_fields, hidden_by_default, is_key)
                protected = {**hidden_by_default, **groups}
                permissions = replace(permissions, protected_fields=protected)
            case "ACL":
                acl = _default_acl(_object(value, key), is_key)
                permissions = replace(permissions, default_acl=None if acl == _PUBLIC_ACL else acl)
            case _ if key in ACTIONS:
                action: Action = key
                rules[action] = _rule(_object(value, key), action, user_fields, is_key)
            case _:
                raise InvalidJSON(
                    f"{shown(key)} is not a valid operation for class level permissions"
                )
    return replace(permissions, rules=rules)


def _array(value: Json, key: str) -> list[Json]:
    if not isinstance(value, list):
        raise _invalid(value, key, "an array")
    return value


def _object(value: Json, key: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _invalid(value, key, "an object")
    return value


def _invalid(value: Json, key: str, expected: str) -> InvalidJSON:
    return InvalidJSON(
        f"'{shown_value(value)}' is not a valid value for class level permissions {key}"
        f" - must be {expected}"
    )


# What Parse Server shows for every class: objects without an access list are public anyway.
_PUBLIC_ACL: Final = {EVERYBODY: {"read": True, "write": True}}
_IsKey: TypeAlias = Callable[[str], bool]


def _is_plain_entity(name: str) -> bool:
    """``is_entity`` where no client chooses ids."""
    return is_entity(name) and (
        name == EVERYBODY or name.startswith(ROLE_PREFIX) or is_auto_id(name)
    )


def _invalid_key(name: str) -> InvalidJSON:
    return InvalidJSON(f"'{shown(name)}' is not a valid key for class level permissions")


def _rule(
    json: Mapping[str, Json], action: Action, user_fields: Collection[FieldName], is_key: _IsKey
) -> Rule:
    rule = NOBODY
    entities = set()
    for entity, permit in json.items():
        if entity == "pointerFields":
            if not isinstance(permit, list):
                raise InvalidJSON(
                    f"'{shown_value(permit)}' is not a valid value for {action}[pointerFields]"
                    " - expected an array."
                )
            names = _user_fields(permit, f"{action}[pointerFields]", user_fields)
            rule = replace(rule, pointer_fields=names)
            continue
        if not is_key(entity):
            raise _invalid_key(entity)
        if permit is not True:
            raise InvalidJSON(
                f"'{shown_value(permit)}' is not a valid value for class level permissions acl"
                f" {action}:{entity}"
            )
        if entity == "requiresAuthentication":
            rule = replace(rule, requires_authentication=True)
        else:
            entities.add(entity)
    return replace(rule, entities=frozenset(entities))


def _user_fields(
    json: list[Json], place: str, user_fields: Collection[FieldName]
) -> tuple[FieldName, ...]:
    names: list[FieldName] = []
    for name in json:
        if not isinstance(name, str) or name not in user_fields:
            raise InvalidJSON(
                f"'{shown_value(name)}' is not a valid column for class level pointer permissions"
                f" {place}"
            )
        names.append(FieldName(name))
    return tuple(dict.fromkeys(names))


def _protected(
    json: Mapping[str, Json],
    all_fields: Collection[FieldName],
    default: Protection,
    is_key: _IsKey,
) -> dict[str, frozenset[FieldName]]:
    protected: dict[str, frozenset[FieldName]] = {}
    for group, names in json.items():
        if group.startswith(USER_FIELD_PREFIX):
            # The field needn't exist yet: no object of the class names a user in it.
            is_valid_key = is_field_name(group[len(USER_FIELD_PREFIX) :])
        else:
            is_valid_key = group == AUTHENTICATED or is_key(group)
        if not is_valid_key:
            raise _invalid_key(group)
        if not isinstance(names, list):
            raise InvalidJSON(
                f"'{shown_value(names)}' is not a valid value for protectedFields[{group}]"
                " - expected an array."
            )
        hidden = set()
        for name in names:
            if name in ("objectId", "createdAt", "updatedAt", "ACL"):
                raise InvalidJSON(f"Default field '{name}' can not be protected")
            # The default may name fields that the class doesn't have yet.
            if not isinstance(name, str) or name not in {*all_fields, *default.get(group, ())}:
                raise InvalidJSON(
                    f"Field '{shown_value(name)}' in protectedFields:{group} does not exist"
                )
            hidden.add(FieldName(name))
        # SDKs and dashboards send an empty list for everybody with every change of permissions.
        always = default.get(group, frozenset()) if group == EVERYBODY else frozenset()
        protected[group] = frozenset(hidden) | always
    return protected


def _default_acl(json: Mapping[str, Json], is_key: _IsKey) -> dict[str, Json]:
    entries: dict[str, Json] = {}
    for entity, entry in json.items():
        if entity != CURRENT_USER and not is_key(entity):
            raise _invalid_key(entity)
        if not isinstance(entry, dict):
            raise InvalidJSON(
                f"'{shown_value(entry)}' is not a valid value for class level permissions acl"
            )
        unknown = [right for right in entry if right not in ("read", "write")]
        if unknown:
            raise InvalidJSON(
                f"'{shown(','.join(unknown))}' is not a valid key for class level permissions acl"
            )
        wrong = [granted for granted in entry.values() if not isinstance(granted, bool)]
        if wrong:
            raise InvalidJSON(
                f"'{shown_value(wrong)}' is not a valid value for class level permissions acl"
            )
        entries[entity] = {**entry}
    return entries
