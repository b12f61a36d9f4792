"""Users: their fields, sessions and passwords."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from backend.settings import environment
from backend.settings.declaration import Area, Setting, flag, items, text, whole
from backend.settings.environment import BadSetting

Protection = Mapping[str, Mapping[str, Sequence[str]]]
"""Fields that are hidden, by class and group of callers as in class permissions."""

_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]*").fullmatch
# Without them users couldn't sign up or in, or the service alone writes them.
_OF_THE_CLASS = frozenset(
    {
        *("username", "password", "email", "authData"),
        *("objectId", "createdAt", "updatedAt", "ACL", "sessionToken"),
    }
)


def _protected_fields(name: str, default: Protection) -> Protection:
    """Return the default, with the classes that the variable names in place of the default's."""
    try:
        value = json.loads(environment.text(name) or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(map(_is_protection, value.values())):
        raise BadSetting(
            f"{name} must be a JSON object of classes, each with groups and their"
            ' fields, such as {"_User": {"*": ["email", "phone"]}}.'
        )
    named = {
        class_name: {group: tuple(fields) for group, fields in groups.items()}
        for class_name, groups in value.items()
    }
    return {**default, **named}


def _is_protection(groups: object) -> bool:
    return isinstance(groups, dict) and all(
        isinstance(fields, list)
        and all(isinstance(field, str) and _FIELD(field) for field in fields)
        for fields in groups.values()
    )


def _added_field(field: str) -> str:
    if not _FIELD(field) or field in _OF_THE_CLASS:
        raise ValueError(field)
    return field


class Users(Area):
    """What users may see and how they sign in."""

    title = "Users"

    ENFORCE_PRIVATE_USERS = flag(
        True, "off: everybody may read users who sign up without an access list"
    )
    PROTECTED_FIELDS: Setting[Protection] = Setting(
        {"_User": {"*": ("email",)}},
        "JSON: fields that are hidden from groups of callers, by class: those for `*` always,"
        " others where the class's permissions don't name the group. A class that you name replaces"
        " its default;"
        ' `{"_User": {"*": []}}` shows addresses'
        " ([permissions.md](permissions.md#protected-fields))",
        _protected_fields,
        shown='`{"_User": {"*": ["email"]}}`',
    )
    MASTER_ONLY_USER_FIELDS = items(
        "fields of `_User` that only the master key sets, separated by commas, in addition to"
        " `emailVerified` and `betaTester`",
        _added_field,
        "fields that your deployment has added to _User, such as plan and credits",
    )
    SESSION_LENGTH = whole(
        31_536_000, "time that a session lasts; the default is a year", least=60, unit="s"
    )
    EXPIRE_INACTIVE_SESSIONS = flag(True, "off: sessions last until they are ended")
    EXTEND_SESSION_ON_USE = flag(
        False, "a session that is used in its second half lasts `SESSION_LENGTH` again"
    )
    REVOKE_SESSIONS_ON_PASSWORD_CHANGE = flag(True, "a new password ends the user's sessions")
    PASSWORD_PATTERN = Setting(
        "",
        "a regular expression that passwords have to match",
        lambda name, default: environment.pattern(name),
    )
    PASSWORD_MESSAGE = text(
        "the error for a password that doesn't match",
        default="Password does not meet the Password Policy requirements.",
        shown="a general one",
    )
    PASSWORD_NOT_USERNAME = flag(False, "a password may not contain the user name")
    PASSWORD_HISTORY = whole(0, "how many of the last passwords can't be used again", most=20)
    PASSWORD_MAX_AGE = whole(
        0, "time after which a password has to be reset; 0 is never", most=36_500, unit="days"
    )
    LOCKOUT_THRESHOLD = whole(
        0,
        "wrong passwords in a row that lock an account; 0 is never. A stranger who knows a user"
        " name can lock its owner out with it: see [users.md](users.md#passwords)",
        most=999,
    )
    LOCKOUT_DURATION = whole(
        15, "time that an account is locked", least=1, most=99_999, unit="minutes"
    )
