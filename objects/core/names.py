"""What classes, fields and objects may be called, and new object ids.

Names are the grammar of Parse: ``[A-Za-z][A-Za-z0-9_]*``; a class may also be one of
``SYSTEM_CLASSES``. An object id never looks like a role (``role:X``) or like everybody (``*``),
so an id can stand in an access list without being mistaken for one of them.

A text of a client becomes a ``ClassName``, ``FieldName`` or ``ObjectId`` here and nowhere else
(``check_…``, ``parse_object_id``), at the boundary. What is below the boundary takes these types,
so mypy refuses a text that wasn't checked. They are plain strings at run time.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Callable
from typing import Final, NewType, TypeAlias, TypeGuard, cast

from backend.kernel.errors import (
    InvalidClassName,
    InvalidKeyName,
    MissingObjectId,
    ObjectNotFound,
)
from backend.kernel.randomness import random_bytes
from backend.kernel.texts.cache import short_cache
from backend.kernel.texts.shown import shown

Subject = NewType("Subject", str)
"""What triggers can be declared for: a class, or what has triggers without being one."""
ClassName = NewType("ClassName", Subject)
"""A text that may name a class."""
FieldName = NewType("FieldName", str)
"""A text that may name a field of an object."""
ObjectId = NewType("ObjectId", str)
"""A text that may be an object's id."""

DottedName = NewType("DottedName", str)
"""A field and keys inside its value, as a write names them: ``address.city``."""
WriteKey: TypeAlias = FieldName | DottedName
FieldPath: TypeAlias = tuple[FieldName, *tuple[str, ...]]
"""A field, and keys inside its value: ``("address", "city")`` for ``address.city``."""

USER: Final = ClassName(Subject("_User"))
SESSION: Final = ClassName(Subject("_Session"))
ROLE: Final = ClassName(Subject("_Role"))
INSTALLATION: Final = ClassName(Subject("_Installation"))
PUSH_STATUS: Final = ClassName(Subject("_PushStatus"))
AUDIENCE: Final = ClassName(Subject("_Audience"))
IDEMPOTENCY: Final = ClassName(Subject("_Idempotency"))

OBJECT_ID: Final = FieldName("objectId")
CREATED_AT: Final = FieldName("createdAt")
UPDATED_AT: Final = FieldName("updatedAt")

SYSTEM_CLASSES: Final = frozenset(
    {
        "_User",
        "_Installation",
        "_Role",
        "_Session",
        "_Product",
        "_PushStatus",
        "_JobStatus",
        "_JobSchedule",
        "_Hooks",
        "_GlobalConfig",
        "_GraphQLConfig",
        "_Audience",
        "_Idempotency",
    }
)

# Keys that break clients written in JavaScript wherever they stand in a document.
PROHIBITED_KEYS: Final = frozenset({"__proto__", "constructor", "prototype", "_bsontype"})

OBJECT_ID_LENGTH: Final = 10
MAX_NAME_LENGTH: Final = 128
MAX_PATH_STEPS: Final = 50

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_OBJECT_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}")
_AUTO_ID = re.compile(r"[A-Za-z0-9]{1,128}")
_ROLE_NAME = re.compile(r"[0-9A-Za-z_\- ]{1,128}")
ROLE_PREFIX: Final = "role:"
# Words with another meaning in places where ids occur, in permissions and in paths.
_RESERVED_IDS: Final = frozenset(
    {"authenticated", "currentUser", "me", "pointerFields", "requiresAuthentication"}
)
_RESERVED_NAMES = frozenset({"length", "className"})

_ALPHABET = (string.ascii_letters + string.digits).encode()
# 248 is the largest multiple of 62 in a byte: what lies above would favour the first letters.
_TO_ALPHABET = bytes(_ALPHABET[byte % 62] for byte in range(256))
_UNFAIR = bytes(range(248, 256))


@short_cache(maxsize=4096, longest=MAX_NAME_LENGTH)
def _has_form(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in _RESERVED_NAMES


# The cache hides from type checkers that this is a guard.
is_field_name = cast("Callable[[str], TypeGuard[FieldName]]", _has_form)
"""Whether a field may have this name; ``objectId`` and the like are names as well."""


def is_class_name(name: str) -> TypeGuard[ClassName]:
    """Return whether a class, custom or system, may have this name."""
    return name in SYSTEM_CLASSES or _has_form(name)


def check_class_name(name: str) -> ClassName:
    """Return the name, or raise ``InvalidClassName``."""
    if is_class_name(name):
        return name
    raise invalid_class_name(name)


def invalid_class_name(name: str) -> InvalidClassName:
    """Return the error for a name that no class can have."""
    return InvalidClassName(
        f"Invalid classname: {shown(name)}, classnames can only have alphanumeric characters"
        " and _, and must start with an alpha character "  # Parse's text ends with a space.
    )


def check_field_name(name: str, place: str = "") -> FieldName:
    """Return the name, or raise ``InvalidKeyName`` with its place."""
    if not is_field_name(name):
        where = f"{place}: " if place else ""
        raise InvalidKeyName(f"{where}Invalid field name: {shown(name)}.")
    return name


def check_key_path(path: str) -> FieldPath:
    """Split ``a.b.c`` into its steps, or raise ``InvalidKeyName``.

    The first step is a field's name. The others are keys inside its value: anything that a
    nested key may be, so not empty and without ``$``.
    """
    if "." not in path:
        if not is_field_name(path):
            raise InvalidKeyName(f"Invalid key name: {shown(path)}")
        return (path,)
    name, *keys = path.split(".")
    for step in (name, *keys):
        if step in PROHIBITED_KEYS:
            raise prohibited(step)
    if (
        not is_field_name(name)
        or len(keys) >= MAX_PATH_STEPS
        or not all(_is_step(key) for key in keys)
    ):
        raise InvalidKeyName(f"Invalid key name: {shown(path)}")
    return (name, *keys)


def prohibited(key: str) -> InvalidKeyName:
    """Return the error for one of ``PROHIBITED_KEYS`` in a request."""
    # Parse Server's list has this key together with the one value that its database executes.
    value = ',"value":"Code"' if key == "_bsontype" else ""
    return InvalidKeyName(f'Prohibited keyword in request data: {{"key":"{key}"{value}}}.')


def field_of(key: WriteKey) -> FieldName:
    """Return the field that a key of a write names, or names a part of."""
    return FieldName(key.partition(".")[0])


def _is_step(step: str) -> bool:
    if step == "" or "$" in step:
        return False
    return is_storable_text(step)


def is_storable_text(text: str) -> bool:
    """Return whether PostgreSQL can store this text: no NUL and no half of a surrogate pair."""
    if "\x00" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_object_id(object_id: str) -> TypeGuard[ObjectId]:
    """Return whether an object may have this id."""
    return _OBJECT_ID.fullmatch(object_id) is not None


def is_auto_id(object_id: str) -> TypeGuard[ObjectId]:
    """Return whether an object may have this id where no client chooses ids."""
    return _AUTO_ID.fullmatch(object_id) is not None


def parse_object_id(text: str) -> ObjectId:
    """Return the id of an object to look up, or raise ``ObjectNotFound`` if it is invalid."""
    if is_object_id(text):
        return text
    raise ObjectNotFound


def check_object_id(object_id: object) -> ObjectId:
    """Return an id that a new object may have, or raise ``MissingObjectId``."""
    if isinstance(object_id, str) and is_object_id(object_id) and object_id not in _RESERVED_IDS:
        return object_id
    if object_id is None or object_id == "":
        raise MissingObjectId("objectId must not be empty, null or undefined")
    raise MissingObjectId(f"Invalid object id: {shown(object_id)}")


def is_role_name(name: str) -> bool:
    """Return whether a role may have this name."""
    return _ROLE_NAME.fullmatch(name) is not None


def role_id(role_name: str) -> str:
    """Return the id by which access lists name a role."""
    return ROLE_PREFIX + role_name


def is_entity(name: str) -> bool:
    """Return whether this is a valid access list entry: ``*``, a user's id or ``role:NAME``."""
    if name.startswith(ROLE_PREFIX):
        return is_role_name(name[len(ROLE_PREFIX) :])
    return name == "*" or is_object_id(name)


def new_object_id() -> ObjectId:
    """Ten characters of ``[A-Za-z0-9]`` from a cryptographic source, all equally likely."""
    while True:
        letters = random_bytes(16).translate(_TO_ALPHABET, _UNFAIR)
        if len(letters) >= OBJECT_ID_LENGTH:
            return ObjectId(letters[:OBJECT_ID_LENGTH].decode("ascii"))


def new_object_ids(count: int) -> list[ObjectId]:
    """As many new ids, for rows that are stored in bulk."""
    letters = ""
    while len(letters) < count * OBJECT_ID_LENGTH:
        # One byte in 32 is unfair: a little more than is needed saves a second round.
        missing = count * OBJECT_ID_LENGTH - len(letters)
        drawn = os.urandom(missing + missing // 16 + 32)
        letters += drawn.translate(_TO_ALPHABET, _UNFAIR).decode("ascii")
    return [
        ObjectId(letters[start : start + OBJECT_ID_LENGTH])
        for start in range(0, count * OBJECT_ID_LENGTH, OBJECT_ID_LENGTH)
    ]
