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
    ValidationFailed,
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
    prohibited,
)
from objects.core.schema.inference import infer
from objects.core.update.operations import Times, Write
from objects.core.update.operators import OPERATORS, ChangeRelation, Operation, Set
from objects.core.values import normalise, normalise_date

MAX_OPERATIONS: Final = 10_000
# The service alone sets these.
_RESERVED: Final = frozenset({"objectId", "id", "createdAt", "updatedAt"})
_TIMES: Final = frozenset({"createdAt", "updatedAt"})


def parse_write(
    body: Json,
    *,
    creating: bool,
    parsed: Mapping[WriteKey, Operation] | None = None,
    class_name: str = "",
    sets_times: bool = False,
) -> Write:
    """Return the write of a body, from which the caller has removed non-object parameters.

    ``parsed`` are operations of an earlier call, whose keys aren't parsed again. The caller
    guarantees that the values of these keys are the same.

    ``createdAt`` and ``updatedAt`` have to be Dates. They are ignored, unless ``sets_times`` and a
    new object allow them to be set. ``class_name`` is for errors.

    Raises ``InvalidJSON`` (not an object, an operator without what it needs),
    ``IncorrectType``, ``ObjectTooLarge`` (too many keys), ``InvalidKeyName``,
    ``CommandUnavailable`` (no such operator), ``InvalidACL``, and what ``values.normalise`` raises.
    """
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise InvalidJSON("expected a JSON object")
    if len(body) > MAX_OPERATIONS:
        raise ObjectTooLarge(f"a write names at most {MAX_OPERATIONS:,} fields and keys in them")
    operations: dict[WriteKey, Operation] = {}
    acl: Acl | None = None
    times: dict[str, str] = {}
    has_paths = False
    for key, value in body.items():
        if key == "ACL":
            acl = _parse_acl(value)
        elif key in _TIMES:
            moment = _parse_time(key, value, class_name)
            if moment is not None:
                times[key] = moment
        else:
            is_path = "." in key
            has_paths = has_paths or is_path
            name: WriteKey = _check_path(key) if is_path else _check_name(key)
            if parsed and name in parsed:
                operations[name] = parsed[name]
            elif isinstance(value, dict):
                operations[name] = _parse_operation(key, value)
            else:
                operations[name] = Set(normalise(value, key, key.count(".")))
    if has_paths:
        _check_apart(operations)
    if times and sets_times and creating:
        return Write(operations, acl, creating, times=_times(times))
    return Write(operations, acl, creating)


def _parse_time(key: str, value: Json, class_name: str) -> str | None:
    if value is None or (isinstance(value, dict) and value.get("__op") == "Delete"):
        return None
    if isinstance(value, dict) and value.get("__type") == "Date":
        return normalise_date(value.get("iso"), key)
    name = f"{class_name}.{key}" if class_name else key
    actual = infer(normalise(value, key))
    raise IncorrectType(f"schema mismatch for {name}; expected Date but got {actual}")


def _times(times: Mapping[str, str]) -> Times | None:
    created_at = times.get("createdAt")
    if created_at is None:
        return None
    updated_at = times.get("updatedAt", created_at)
    if updated_at < created_at:  # both have the same form
        raise ValidationFailed("updatedAt cannot occur before createdAt")
    return Times(created_at, updated_at)


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
        raise prohibited(key)
    return check_field_name(key)


def _check_path(key: str) -> DottedName:
    root = check_key_path(key)[0]
    if root in _RESERVED or root == "ACL":
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
