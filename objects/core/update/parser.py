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
from backend.kernel.text import shown
from objects.core.access.acl import PUBLIC_ACL, Acl, parse_acl
from objects.core.names import (
    PROHIBITED_KEYS,
    ClassName,
    DottedName,
    FieldName,
    ObjectId,
    WriteKey,
    check_class_name,
    check_field_name,
    check_key_path,
    parse_object_id,
)
from objects.core.update.operations import (
    Add,
    AddUnique,
    ChangeRelation,
    Delete,
    Increment,
    Operation,
    Remove,
    Set,
    SetOnInsert,
    Write,
)
from objects.core.values import canonical_number, is_pointer, normalise

MAX_OPERATIONS: Final = 10_000
# The service alone sets these.
_RESERVED: Final = frozenset({"objectId", "id", "createdAt", "updatedAt"})


def parse_write(
    body: Json, *, creating: bool, parsed: Mapping[WriteKey, Operation] | None = None
) -> Write:
    """The write that a body asks for. The caller has taken out what is not the object's.

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
    if name == "Delete":
        return Delete()
    if name == "Increment":
        return Increment(_amount(key, value.get("amount")))
    if name == "Add":
        return Add(_objects(key, value, "objects to add must be an array"))
    if name == "AddUnique":
        return AddUnique(_objects(key, value, "objects to add must be an array"))
    if name == "Remove":
        return Remove(_objects(key, value, "objects to remove must be an array"))
    if name == "SetOnInsert":
        if value.get("amount") is None:
            raise InvalidJSON(f"{key}.amount: expected the value to set")
        # A relation is no value to set: one level down it is refused like in any value.
        return SetOnInsert(normalise(value["amount"], f"{key}.amount", key.count(".") + 1))
    if name in ("AddRelation", "RemoveRelation", "Batch"):
        if "." in key:
            raise InvalidKeyName(f"{shown(key)}: a relation is a field, not a part of one")
        return _relation_change(key, value)
    raise CommandUnavailable(f"The {shown(name)} operator is not supported yet.")


def _set(key: str, value: Json) -> Operation:
    if type(value) is dict and value.get("__type") == "Relation":
        if "." in key:
            raise IncorrectType(f"{shown(key)}: a relation is a field, not a part of one")
        class_name = value["className"]
        assert isinstance(class_name, str)
        return ChangeRelation(check_class_name(class_name))
    return Set(value)


def _amount(key: str, amount: Json) -> int | float:
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise InvalidJSON(f"incrementing must provide a number ({key}.amount)")
    normalise(amount, f"{key}.amount")
    return canonical_number(amount, f"{key}.amount")


def _objects(key: str, value: Mapping[str, Json], message: str) -> tuple[Json, ...]:
    objects = value.get("objects")
    if not isinstance(objects, list):
        raise InvalidJSON(f"{message} ({key}.objects)")
    values = normalise(objects, f"{key}.objects")
    assert isinstance(values, list)
    return tuple(values)


def _relation_change(key: str, value: Mapping[str, Json]) -> ChangeRelation:
    steps: Json = [dict(value)]
    if value["__op"] == "Batch":
        steps = value.get("ops")
        if not isinstance(steps, list):
            raise InvalidJSON(f"{key}.ops: expected an array of operators")
    assert isinstance(steps, list)
    target_classes: set[ClassName] = set()
    members: dict[ObjectId, bool] = {}
    for step in steps:
        name = step.get("__op") if isinstance(step, dict) else None
        if not isinstance(step, dict) or name not in ("AddRelation", "RemoveRelation"):
            raise InvalidJSON(f"{key}.ops: only AddRelation and RemoveRelation go into a Batch")
        adding = name == "AddRelation"
        message = f"objects to {'add' if adding else 'remove'} must be an array"
        for member in _objects(key, step, message):
            if not is_pointer(member):
                raise IncorrectType(f"{key}.objects: expected pointers")
            assert isinstance(member, dict)
            target_classes.add(check_class_name(str(member["className"])))
            # What is said last about a member holds.
            members[parse_object_id(str(member["objectId"]))] = adding
    if len(target_classes) > 1:
        raise IncorrectType(f"{key}: a relation has members of one class only")
    return ChangeRelation(
        next(iter(target_classes), None),
        tuple(member for member, adding in members.items() if adding),
        tuple(member for member, adding in members.items() if not adding),
    )
