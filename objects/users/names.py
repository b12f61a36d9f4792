"""User names, e-mail addresses and role names: what they may be, and when two are the same."""

from __future__ import annotations

import re
import unicodedata

from backend.errors import IncorrectType, InvalidEmailAddress, InvalidRoleName, UsernameMissing
from objects.core.names import is_role_name

_MOST_CHARACTERS = 256
# Something, one @, something; nothing that a mail server may read as a second address or a line.
_EMAIL = re.compile(r"[^\s@,;<>]+@[^\s@,;<>]+\Z")
# Controls and halves of surrogate pairs: nobody sees them, and not every layer keeps them.
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def name_key(name: str) -> str:
    """What two names that count as the same have in common: neither case nor width matters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def is_account_name(text: str) -> bool:
    """Whether every layer reads this name or address alike: it has no control characters."""
    return _INVISIBLE.search(text) is None


def check_account_name(text: str) -> str:
    """A name or address that an account is looked up by, or ``UsernameMissing`` (200)."""
    if not is_account_name(text):
        raise UsernameMissing("username/email must not contain control characters.")
    return text


def check_username(value: object) -> str:
    """A user name, or ``UsernameMissing`` (200)."""
    if not isinstance(value, str) or not value.strip():
        raise UsernameMissing("bad or missing username")
    if len(value) > _MOST_CHARACTERS:
        raise UsernameMissing(f"username: at most {_MOST_CHARACTERS} characters")
    return check_account_name(value)


def check_email(value: object) -> str:
    """An e-mail address, or ``InvalidEmailAddress`` (125)."""
    if (
        not isinstance(value, str)
        or len(value) > _MOST_CHARACTERS
        or not _EMAIL.match(value)
        or not is_account_name(value)
    ):
        raise InvalidEmailAddress("Email address format is invalid.")
    return value


def check_role_name(value: object) -> str:
    """A role's name, or ``IncorrectType`` if there is none and ``InvalidRoleName`` (139)."""
    if value is None:
        raise IncorrectType("name is required.")
    if not isinstance(value, str) or not is_role_name(value):
        raise InvalidRoleName(
            "A role's name can only contain alphanumeric characters, _, -, and spaces."
        )
    if value != value.strip():
        raise InvalidRoleName("A role's name can't begin or end with a space.")
    return value
