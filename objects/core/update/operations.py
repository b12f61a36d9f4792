"""What a write asks for: values to set and update operators, per field or per path in a field.

``parse_write`` reads the body of a POST or PUT, ``fit`` checks it against the class's schema,
``apply`` is the meaning of the operators. A store may run a write in another way (one SQL
statement) as long as the outcome is that of ``apply``.

All operators take a field that is null for one that is missing: both start from nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from backend.kernel.errors import IncorrectType
from backend.kernel.json_types import Json
from objects.core.access.acl import Acl
from objects.core.names import ClassName, FieldName, ObjectId, WriteKey, field_of
from objects.core.schema.definition import ClassSchema, FieldType, infer, reconcile
from objects.core.values import MAX_INTEGER_DIGITS, canonical_number, frozen, is_typed

_INTEGER_LIMIT: Final = 10**MAX_INTEGER_DIGITS
LARGE_AMOUNT: Final = 2**63
"""Increments up to this exceed the largest number only from numbers that no application has.

Those are whole numbers of 1,000 digits, and numbers beyond 10^308 for an increment by a fraction.
"""


@dataclass(slots=True)  # not frozen: a write has one for each field, and freezing doubles its cost
class Set:
    """The value, whatever was there. Nobody changes it once it is made."""

    value: Json


@dataclass(frozen=True, slots=True)
class Delete:
    """Nothing, as if it had never been set."""


@dataclass(frozen=True, slots=True)
class Increment:
    """The number that is there plus the amount; nothing counts as 0."""

    amount: int | float


@dataclass(frozen=True, slots=True)
class Add:
    """The list that is there and these values after it."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class AddUnique:
    """The list that is there and after it those of these values that it lacks."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """The list that is there without any of these values."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class SetOnInsert:
    """The value if the write creates the object; else what is there."""

    value: Json


@dataclass(frozen=True, slots=True)
class ChangeRelation:
    """Members to add to a relation and to take out; first of all emptied if ``clear``.

    ``target_class`` is None only if nothing is added or removed.
    """

    target_class: ClassName | None
    added: tuple[ObjectId, ...] = ()
    removed: tuple[ObjectId, ...] = ()
    clear: bool = False


Operation: TypeAlias = (
    Set | Delete | Increment | Add | AddUnique | Remove | SetOnInsert | ChangeRelation
)

_NUMBER: Final = FieldType("Number")
_ARRAY: Final = FieldType("Array")
_SIMPLE: Final = (Set, Delete, Increment, Add)
_ECHOED: Final = frozenset({Increment, Add, AddUnique, Remove, SetOnInsert})
_NO_CHANGES: Final[Mapping[str, Json]] = MappingProxyType({})


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

    @cached_property
    def is_simple(self) -> bool:
        """Whether all it has are values, deletions, increments and appends of whole fields."""
        return all(
            isinstance(operation, _SIMPLE) and "." not in path
            for path, operation in self.operations.items()
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
            container, _, rest = key.partition(".")
            name = FieldName(container)
            types[name] = _container_type(schema, name, rest)
            continue
        type_ = infer(operation.value) if type(operation) is Set else _operation_type(operation)
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


def _operation_type(operation: Operation) -> FieldType | None:
    if isinstance(operation, SetOnInsert):
        return infer(operation.value)
    if isinstance(operation, Increment):
        return _NUMBER
    if isinstance(operation, Delete):
        return None
    if isinstance(operation, ChangeRelation):
        target_class = operation.target_class
        return None if target_class is None else FieldType("Relation", target_class)
    return _ARRAY


def _container_type(schema: ClassSchema, name: FieldName, rest: str) -> FieldType:
    existing = schema.fields.get(name)
    if existing is not None and existing.kind == "Array" and _is_index(rest.partition(".")[0]):
        return _ARRAY
    return FieldType("Object")


def depends_on_stored(path: WriteKey, operation: Operation, schema: ClassSchema) -> bool:
    """Whether an operation of an update, fitted to the schema, can fail because of stored values.

    Operations on whole fields can't: a field holds values of its type. The exception is an
    increment by more than ``LARGE_AMOUNT``, whose sum can exceed the largest number. Paths can fail
    unless they set or delete a key of an Object field.
    """
    name, _, rest = path.partition(".")
    if not rest:
        return isinstance(operation, Increment) and abs(operation.amount) > LARGE_AMOUNT
    if isinstance(operation, SetOnInsert):
        return False
    type_ = schema.fields.get(FieldName(name))
    is_key = type_ is not None and type_.kind == "Object" and "." not in rest
    return not (is_key and isinstance(operation, Set | Delete))


def apply(write: Write, obj: Mapping[str, Json]) -> dict[str, Json]:
    """The object after the write; the given one is left as it is.

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
            result[name] = outcome(operation, result.get(name), path)
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
        _put(container, last, outcome(operation, _item(container, last, path), path), path)
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


def outcome(operation: Operation, current: Json, path: str) -> Json:
    """The value that an operator other than ``Delete`` makes of the one that is there."""
    if isinstance(operation, Set):
        return operation.value
    if isinstance(operation, Increment):
        if current is None:
            return operation.amount
        if isinstance(current, bool) or not isinstance(current, int | float):
            raise IncorrectType(f"{path}: can't increment what is not a number")
        return add_numbers(current, operation.amount, path)
    if current is None:
        current = []
    if not isinstance(current, list):
        raise IncorrectType(f"{path}: expected an array to add to or remove from")
    if isinstance(operation, Add):
        return [*current, *operation.values]
    if isinstance(operation, AddUnique):
        return [*current, *_lacking(current, operation.values)]
    assert isinstance(operation, Remove)
    removed = {_identity(value) for value in operation.values}
    return [item for item in current if _identity(item) not in removed]


def _lacking(current: list[Json], values: tuple[Json, ...]) -> Iterator[Json]:
    seen = {_identity(item) for item in current}
    for value in values:
        key = _identity(value)
        if key not in seen:
            seen.add(key)
            yield value


def _identity(value: Json) -> Hashable:
    # A file is known by its name: its url depends on the server that shows it.
    if isinstance(value, dict) and value.get("__type") == "File":
        return ("File", value["name"])
    return cast(Hashable, frozen(value))


def add_numbers(a: int | float, b: int | float, path: str) -> int | float:
    """The sum: exact for whole numbers, else that of IEEE doubles; ``IncorrectType`` if too big."""
    if isinstance(a, int) and isinstance(b, int):
        total = a + b
        if abs(total) >= _INTEGER_LIMIT:
            raise IncorrectType(f"{path}: the sum is too big")
        return total
    try:
        return canonical_number(float(a) + float(b), path)
    except OverflowError:
        raise IncorrectType(f"{path}: the sum is too big") from None


def echo(write: Write, after: Mapping[str, Json]) -> dict[str, Json]:
    """What the answer to a write shows of its outcome: what its operators have made.

    Values that the client sent, deletions and relations aren't repeated. A dotted path is
    answered by nested objects with that path alone, or with the whole of an array on the way.
    Changes by server code are added.
    """
    result: dict[str, Json] = {}
    whole = dict(after)
    for path, operation in write.operations.items():
        if type(operation) not in _ECHOED:
            continue
        source: Json = whole
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
