"""What a write asks for: values to set and update operators, per field or per path in a field.

``parse_write`` reads the body of a POST or PUT, ``fit`` checks it against the class's schema,
``apply`` carries out the operators (``operators``). A store may run a write in another way (one SQL
statement) as long as the outcome is that of ``apply``.

All operators take a field that is null for one that is missing: both start from nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from backend.kernel.errors import IncorrectType
from backend.kernel.json_types import Json
from objects.core.access.acl import Acl
from objects.core.names import FieldName, WriteKey, field_of
from objects.core.schema.definition import ClassSchema, FieldType
from objects.core.schema.inference import infer, reconcile
from objects.core.update.operators import (
    ChangeRelation,
    Delete,
    Increment,
    Operation,
    Set,
    SetOnInsert,
)
from objects.core.values import is_typed

LARGE_AMOUNT: Final = 2**63
"""Increments up to this exceed the largest number only from numbers that no application has.

Those are whole numbers of 1,000 digits, and numbers beyond 10^308 for an increment by a fraction.
"""


_NO_CHANGES: Final[Mapping[str, Json]] = MappingProxyType({})


class Times(NamedTuple):
    """The times of a new object, in the wire form of a Date."""

    created_at: str
    updated_at: str


@dataclass(frozen=True)
class Write:
    """A parsed write: an operation for each field, or dotted path (``a.b.c``) into a field.

    No path lies inside of another. ``acl`` is None if the write says nothing about it.
    """

    operations: Mapping[WriteKey, Operation]
    acl: Acl | None = None
    creating: bool = False
    server_changes: Mapping[str, Json] = field(default_factory=lambda: _NO_CHANGES)
    """What server code has changed of the write, by field: values, and deletions in wire form.

    The operations contain these changes already. The caller doesn't know them, so the answer does.
    """
    times: Times | None = None
    """The times of a new object, if its caller sets them."""

    @cached_property
    def is_simple(self) -> bool:
        """Whether all it has are values, deletions, increments and appends of whole fields."""
        return all(
            operation.is_simple and "." not in path for path, operation in self.operations.items()
        )

    @cached_property
    def field_names(self) -> frozenset[FieldName]:
        """The fields that the write touches."""
        return frozenset(field_of(key) for key in self.operations)

    @cached_property
    def relations(self) -> Mapping[FieldName, ChangeRelation]:
        """The changes of relations, by field."""
        return {
            field_of(path): operation
            for path, operation in self.operations.items()
            if isinstance(operation, ChangeRelation)
        }

    @cached_property
    def emptied(self) -> frozenset[FieldName]:
        """The fields that the write leaves missing, null or as an empty text."""
        return frozenset(
            FieldName(path)
            for path, operation in self.operations.items()
            if (
                isinstance(operation, Delete)
                or (isinstance(operation, Set) and operation.value in (None, ""))
            )
            and "." not in path
        )


def fit(write: Write, schema: ClassSchema) -> tuple[Write, dict[FieldName, FieldType]]:
    """Fit a write to a schema: the write to carry out, and the fields that it adds to the class.

    Raises ``IncorrectType`` where the two disagree. To delete a relation, or to set it to null,
    is to empty it.
    """
    cleared: dict[WriteKey, Operation] = {}
    types: dict[WriteKey, FieldType] = {}
    for key, operation in write.operations.items():
        if "." in key:
            container, _, subpath = key.partition(".")
            name = FieldName(container)
            types[name] = _container_type(schema, name, subpath)
            continue
        type_ = infer(operation.value) if type(operation) is Set else operation.field_type()
        if type_ is not None:
            types[key] = type_
            continue
        name = field_of(key)
        existing = schema.fields.get(name)
        if existing is not None and existing.kind == "Relation":
            if not isinstance(operation, ChangeRelation):
                cleared[name] = ChangeRelation(existing.target_class, clear=True)
        elif isinstance(operation, ChangeRelation) and existing is not None:
            raise IncorrectType(
                f"schema mismatch for {schema.class_name}.{name};"
                f" expected {existing} but got Relation"
            )
    # Dotted names were replaced by their fields, so every key is the name of a field.
    new = reconcile(schema, cast("Mapping[FieldName, FieldType]", types))
    if cleared:
        write = replace(write, operations={**write.operations, **cleared})
    return write, new


def _container_type(schema: ClassSchema, name: FieldName, subpath: str) -> FieldType:
    existing = schema.fields.get(name)
    if existing is not None and existing.kind == "Array" and _is_index(subpath.partition(".")[0]):
        return FieldType("Array")
    return FieldType("Object")


def depends_on_stored(path: WriteKey, operation: Operation, schema: ClassSchema) -> bool:
    """Return whether an operation, fitted to the schema, can fail because of stored values.

    Operations on whole fields can't: a field holds values of its type. The exception is an
    increment by more than ``LARGE_AMOUNT``, whose sum can exceed the largest number. Paths can fail
    unless they set or delete a key of an Object field.
    """
    name, _, subpath = path.partition(".")
    if not subpath:
        return isinstance(operation, Increment) and abs(operation.amount) > LARGE_AMOUNT
    if isinstance(operation, SetOnInsert):
        return False
    type_ = schema.fields.get(FieldName(name))
    is_key = type_ is not None and type_.kind == "Object" and "." not in subpath
    return not (is_key and isinstance(operation, Set | Delete))


def apply(write: Write, obj: Mapping[str, Json]) -> dict[str, Json]:
    """Return the object after the write; the given one is left as it is.

    Changes of relations are not in objects, so they change nothing here. Raises
    ``IncorrectType`` if an operator meets a value that it can't work on.
    """
    result = dict(obj)
    for path, operation in write.operations.items():
        if type(operation) is Set and "." not in path:
            result[path] = operation.value
            continue
        if isinstance(operation, ChangeRelation):
            continue
        if isinstance(operation, SetOnInsert):
            if not write.creating:
                continue
            operation = Set(operation.value)
        name, *steps = path.split(".")
        if steps:
            _apply_nested(result, name, steps, operation, path)
        elif isinstance(operation, Delete):
            result.pop(name, None)
        else:
            result[name] = operation.outcome(result.get(name), path)
    if write.acl is not None:
        wire = write.acl.to_wire()
        if wire is None:
            result.pop("ACL", None)
        else:
            result["ACL"] = wire
    return result


def _apply_nested(
    obj: dict[str, Json], name: str, steps: list[str], operation: Operation, path: str
) -> None:
    deleting = isinstance(operation, Delete)
    if deleting and obj.get(name) is None:
        return
    # Containers are copied on the way down: the object that was given shares none of them.
    obj[name] = container = _copied(obj.get(name), path)
    for step in steps[:-1]:
        inner = _item(container, step, path)
        if deleting and inner is None:
            return
        copied = _copied(inner, path)
        _put(container, step, copied, path)
        container = copied
    last = steps[-1]
    if not deleting:
        _put(container, last, operation.outcome(_item(container, last, path), path), path)
    elif isinstance(container, dict):
        container.pop(last, None)
    elif _is_index(last) and int(last) < len(container):
        container[int(last)] = None


def _copied(value: Json, path: str) -> dict[str, Json] | list[Json]:
    if value is None:
        return {}
    if isinstance(value, list):
        return [*value]
    if isinstance(value, dict) and not is_typed(value):
        return {**value}
    raise IncorrectType(f"{path}: there is a value on the way that is neither object nor array")


def _is_index(step: str) -> bool:
    return step.isascii() and step.isdecimal() and len(step) <= 9


def _item(container: dict[str, Json] | list[Json], step: str, path: str) -> Json:
    if isinstance(container, dict):
        return container.get(step)
    if not _is_index(step):
        raise IncorrectType(f"{path}: expected a position in an array")
    return container[int(step)] if int(step) < len(container) else None


def _put(container: dict[str, Json] | list[Json], step: str, value: Json, path: str) -> None:
    if isinstance(container, dict):
        container[step] = value
        return
    position = int(step) if _is_index(step) else -1
    if not 0 <= position <= len(container):
        raise IncorrectType(f"{path}: {step} is not a position in the array, nor its end")
    container[position : position + 1] = [value]


def echo(write: Write, after: Mapping[str, Json]) -> dict[str, Json]:
    """What the answer to a write shows of its outcome: what its operators have made.

    Values that the client sent, deletions and relations aren't repeated. A dotted path is
    answered by nested objects with that path alone, or with the whole of an array on the way.
    Changes by server code are added.
    """
    result: dict[str, Json] = {}
    document = dict(after)
    for path, operation in write.operations.items():
        if not operation.is_echoed:
            continue
        source: Json = document
        target: dict[str, Json] = result
        steps = path.split(".")
        for step in steps[:-1]:
            source = source.get(step) if isinstance(source, dict) else None
            if not isinstance(source, dict):
                target[step] = source
                break
            inner = target.setdefault(step, {})
            assert isinstance(inner, dict)
            target = inner
        else:
            assert isinstance(source, dict)
            if steps[-1] in source:
                target[steps[-1]] = source[steps[-1]]
    return {**result, **write.server_changes}
