"""Reading the body of a POST or PUT of an object: plain values and ``__op`` operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from backend.kernel.errors import (
    CommandUnavailable,
    IncorrectType,
    InvalidACL,
    InvalidJSON,
    InvalidKeyName,
    ObjectTooLarge,
)
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.access.acl import PUBLIC_ACL, Acl, parse_acl
from objects.core.names import (
    PROHIBITED_KEYS,
    DottedName,
    FieldName,
    WriteKey,
    check_class_name,
    check_field_name,
    check_key_path,
)
from objects.core.update.operations import Write
from objects.core.update.operators import OPERATORS, ChangeRelation, Operation, Set
from objects.core.values import normalise

MAX_OPERATIONS: Final = 10_000
# The service alone sets these.
_RESERVED: Final = frozenset({"objectId", "id", "createdAt", "updatedAt"})


def parse_write(
    body: Json, *, creating: bool, parsed: Mapping[WriteKey, Operation] | None = None
) -> Write:
    """Return the write of a body, from which the caller has removed non-object parameters.

    ``parsed`` are operations of an earlier call, whose keys aren't parsed again. The caller
    guarantees that the values of these keys are the same.

    Raises ``InvalidJSON`` (not an object, an operator without what it needs),
    ``ObjectTooLarge`` (too many keys), ``InvalidKeyName``, ``CommandUnavailable`` (no such
    operator), ``InvalidACL``, and what ``values.normalise`` raises.
    """
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise InvalidJSON("expected a JSON object")
    if len(body) > MAX_OPERATIONS:
        raise ObjectTooLarge(f"a write names at most {MAX_OPERATIONS:,} fields and keys in them")
    operations: dict[WriteKey, Operation] = {}
    acl: Acl | None = None
    dotted = False
    for key, value in body.items():
        if key == "ACL":
            acl = _parse_acl(value)
            continue
        name: WriteKey
        if "." in key:
            dotted = True
            name = _check_path(key)
        else:
            name = _check_name(key)
        if parsed and name in parsed:
            operations[name] = parsed[name]
        elif isinstance(value, dict):
            operations[name] = _parse_operation(key, value)
        else:
            operations[name] = Set(normalise(value, key, key.count(".")))
    if dotted:
        _check_apart(operations)
    return Write(operations, acl, creating)


def _parse_acl(value: Json) -> Acl:
    if isinstance(value, dict) and "__op" in value:
        if value["__op"] != "Delete":
            raise InvalidACL("Invalid ACL. ACL: expected an object or the operator Delete")
        return PUBLIC_ACL
    return parse_acl(value)


# Exceptions aren't remembered and valid names are short, so clients can't fill it with long texts.
@lru_cache(maxsize=4096)
def _check_name(key: str) -> FieldName:
    if key in _RESERVED:
        raise InvalidKeyName(f"{key} is an invalid field name.")
    if key in PROHIBITED_KEYS:
        raise InvalidKeyName(f'Prohibited keyword in request data: {{"key":"{key}"}}.')
    return check_field_name(key)


def _check_path(key: str) -> DottedName:
    root = check_key_path(key)[0]
    if root in _RESERVED or root == "ACL" or root in PROHIBITED_KEYS:
        raise InvalidKeyName(f"{shown(key)} is an invalid field name.")
    return DottedName(key)


def _check_apart(paths: Iterable[str]) -> None:
    taken = set(paths)
    for path in taken:
        outer = path
        while "." in outer:
            outer = outer.rpartition(".")[0]
            if outer in taken:
                raise InvalidKeyName(
                    f"Updating the path '{shown(path)}' would create a conflict at '{shown(outer)}'"
                )


def _parse_operation(key: str, value: dict[str, Json]) -> Operation:
    if "__op" not in value:
        return _set(key, normalise(value, key, key.count(".")))
    name = value["__op"]
    operator = OPERATORS.get(name) if isinstance(name, str) else None
    if operator is None:
        raise CommandUnavailable(f"The {shown(name)} operator is not supported yet.")
    return operator.parse(key, value)


def _set(key: str, value: Json) -> Operation:
    if type(value) is dict and value.get("__type") == "Relation":
        if "." in key:
            raise IncorrectType(f"{shown(key)}: a relation is a field, not a part of one")
        class_name = value["className"]
        assert isinstance(class_name, str)
        return ChangeRelation(check_class_name(class_name))
    return Set(value)
