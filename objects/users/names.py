"""User names, e-mail addresses and role names: what they may be, and when two are the same.

New names and addresses have no invisible characters (``backend.kernel.texts.spelling``), so that no
account looks like another one.
"""

from __future__ import annotations

import re

from backend.kernel.errors import (
    IncorrectType,
    InvalidEmailAddress,
    InvalidRoleName,
    UsernameMissing,
)
from backend.kernel.texts.spelling import (
    check_account_name,
    former_key,
    has_control_characters,
    invisible_character,
    name_key,
)
from objects.core.names import is_role_name

_MOST_CHARACTERS = 256
# Something, one @, something; nothing that a mail server may read as a second address or a line.
_EMAIL = re.compile(r"[^\s@,;<>]+@[^\s@,;<>]+\Z")


def account_keys(name: str) -> tuple[str, str]:
    """Return the two keys to look an account up by: the present one and the former one.

    Names that are older than the rules about spaces and invisible characters are stored under the
    former key, and take precedence when both keys match. The keys of most names are equal. For a
    name that no new account may take, both are the former key.
    """
    former = former_key(name)
    if name != name.strip() or invisible_character(name) is not None:
        return former, former
    return name_key(name), former


def stored_key(value: object) -> str | None:
    """Return the key under which an account with this name or address is stored, or None."""
    return account_keys(value)[0] if isinstance(value, str) else None


def check_username(value: object) -> str:
    """Return a user name, new or stored. Raises ``UsernameMissing`` (200)."""
    if not isinstance(value, str) or not value.strip():
        raise UsernameMissing("bad or missing username")
    if len(value) > _MOST_CHARACTERS:
        raise UsernameMissing(f"username: at most {_MOST_CHARACTERS} characters")
    return check_account_name(value)


def check_new_username(value: object) -> str:
    """Return a name that a user may take. Raises ``UsernameMissing`` (200)."""
    name = check_username(value)
    if (character := invisible_character(name)) is not None:
        raise UsernameMissing(f"username: invisible character {character}. Remove it.")
    if name != name.strip():
        raise UsernameMissing("username: space at the beginning or the end. Remove it.")
    return name


def check_email(value: object) -> str:
    """Return an e-mail address, new or stored. Raises ``InvalidEmailAddress`` (125)."""
    if (
        not isinstance(value, str)
        or len(value) > _MOST_CHARACTERS
        or not _EMAIL.match(value)
        or has_control_characters(value)
    ):
        raise InvalidEmailAddress("Email address format is invalid.")
    return value


def check_new_email(value: object) -> str:
    """Return an e-mail address that a user may take. Raises ``InvalidEmailAddress`` (125)."""
    address = check_email(value)
    if (character := invisible_character(address)) is not None:
        raise InvalidEmailAddress(f"email: invisible character {character}. Remove it.")
    return address


def check_role_name(value: object) -> str:
    """Return a role's name. Raises ``IncorrectType`` for None and ``InvalidRoleName`` (139)."""
    if value is None:
        raise IncorrectType("name is required.")
    if not isinstance(value, str) or not is_role_name(value):
        raise InvalidRoleName(
            "A role's name can only contain alphanumeric characters, _, -, and spaces."
        )
    if value != value.strip():
        raise InvalidRoleName("A role's name can't begin or end with a space.")
    return value
