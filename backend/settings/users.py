"""Which fields of users are whose, from the environment: ``PROTECTED_FIELDS`` and
``MASTER_ONLY_USER_FIELDS``."""

from __future__ import annotations

import json
import re
from typing import Any

from backend.settings import environment
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting

_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]*").fullmatch
# Without them no user could sign up or in, or only the service writes them.
_OF_THE_CLASS = frozenset(
    {
        *("username", "password", "email", "authData"),
        *("objectId", "createdAt", "updatedAt", "ACL", "sessionToken"),
    }
)


def service_values() -> dict[str, Any]:
    """The settings as ``backend.settings.conf`` names them."""
    return {
        "PROTECTED_FIELDS": _protected_fields(),
        "MASTER_ONLY_USER_FIELDS": _master_only(),
    }


def _protected_fields() -> dict[str, dict[str, tuple[str, ...]]]:
    """The default, with the classes that the variable names in place of the default's."""
    text = environment.text("PROTECTED_FIELDS")
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(map(_is_protection, value.values())):
        raise BadSetting(
            "PROTECTED_FIELDS must be a JSON object of classes, each with groups and their"
            ' fields, such as {"_User": {"*": ["email", "phone"]}}.'
        )
    named = {
        class_name: {group: tuple(fields) for group, fields in groups.items()}
        for class_name, groups in value.items()
    }
    return {**DEFAULTS["PROTECTED_FIELDS"], **named}


def _is_protection(groups: object) -> bool:
    return isinstance(groups, dict) and all(
        isinstance(fields, list)
        and all(isinstance(field, str) and _FIELD(field) for field in fields)
        for fields in groups.values()
    )


def _master_only() -> tuple[str, ...]:
    names = tuple(environment.words("MASTER_ONLY_USER_FIELDS"))
    for name in names:
        if not _FIELD(name) or name in _OF_THE_CLASS:
            raise BadSetting(
                "MASTER_ONLY_USER_FIELDS must list fields that your deployment has added to"
                f" _User, such as plan,credits; not {name!r}."
            )
    return names
