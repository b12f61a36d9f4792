"""The update operators: one class each, with its name on the wire, its parsing and its outcome.

All operators take a field that is null for one that is missing: both start from nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias, cast

from backend.kernel.errors import IncorrectType, InvalidJSON, InvalidKeyName
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.names import ClassName, ObjectId, check_class_name, parse_object_id
from objects.core.schema.definition import FieldType
from objects.core.schema.inference import infer
from objects.core.values import (
    MAX_INTEGER_DIGITS,
    canonical_number,
    frozen,
    is_pointer,
    normalise,
)

_EXACT: Final = 2**53
"""Whole numbers below this are the same as floats."""
_INTEGER_LIMIT: Final = 10**MAX_INTEGER_DIGITS
_NUMBER: Final = FieldType("Number")
_ARRAY: Final = FieldType("Array")


class Operator:
    """Any operator of a write. Use the subclasses."""

    __slots__ = ()

    names: ClassVar[tuple[str, ...]] = ()
    """Values of ``__op``."""
    is_simple: ClassVar[bool] = False
    """Whether a statement for simple writes can carry it out on a whole field."""
    is_echoed: ClassVar[bool] = False
    """Whether the response to a write has the field's new value."""

    @classmethod
    def parse(cls, key: str, value: Mapping[str, Json]) -> Operation:
        """Return the operation of ``{"__op": …}`` at a key. Raises ``ServiceError``."""
        raise NotImplementedError

    def field_type(self) -> FieldType | None:
        """Return the type that a field needs for the operation; None if it needs none."""
        raise NotImplementedError

    def outcome(self, current: Json, path: str) -> Json:
        """Return the value that the operation makes of the current one.

        Raises ``IncorrectType`` for a value that it can't work on.
        """
        raise NotImplementedError


@dataclass(slots=True)  # not frozen: a write has one for each field, and freezing doubles its cost
class Set(Operator):
    """Replace the value. The new value is never mutated after the operation is created."""

    is_simple = True

    value: Json

    def field_type(self) -> FieldType | None:
        return infer(self.value)

    def outcome(self, current: Json, path: str) -> Json:
        return self.value


@dataclass(frozen=True, slots=True)
class Delete(Operator):
    """Nothing, as if it had never been set."""

    names = ("Delete",)
    is_simple = True

    @classmethod
    def parse(cls, key: str, value: Mapping[str, Json]) -> Operation:
        return cls()

    def field_type(self) -> FieldType | None:
        return None


@dataclass(frozen=True, slots=True)
class Increment(Operator):
    """The number that is there plus the amount; nothing counts as 0."""

    names = ("Increment",)
    is_simple = True
    is_echoed = True

    amount: int | float

    @classmethod
    def parse(cls, key: str, value: Mapping[str, Json]) -> Operation:
        return cls(_amount(key, value.get("amount")))

    def field_type(self) -> FieldType | None:
        return _NUMBER

    def outcome(self, current: Json, path: str) -> Json:
        if current is None:
            return self.amount
        if isinstance(current, bool) or not isinstance(current, int | float):
            raise IncorrectType(f"{path}: can't increment what is not a number")
        return add_numbers(current, self.amount, path)


@dataclass(frozen=True, slots=True)
class Add(Operator):
    """The list that is there and these values after it."""

    names = ("Add",)
    is_simple = True
    is_echoed = True

    values: tuple[Json, ...]

    @classmethod
    def parse(cls, key: str, value: Mapping[str, Json]) -> Operation:
        return cls(_objects(key, value, "objects to add must be an array"))

    def field_type(self) -> FieldType | None:
        return _ARRAY

    def outcome(self, current: Json, path: str) -> Json:
        return [*_array(current, path), *self.values]


@dataclass(frozen=True, slots=True)
class AddUnique(Operator):
    """The list that is there and after it those of these values that it lacks."""

    names = ("AddUnique",)
    is_echoed = True

    values: tuple[Json, ...]

    @classmethod
    def parse(cls, key: str, value: Mapping[str, Json]) -> Operation:
        return cls(_objects(key, value, "objects to add must be an array"))

    def field_type(self) -> FieldType | None:
        return _ARRAY

    def outcome(self, current: Json, path: str) -> Json:
        array = _array(current, path)
        return [*array, *_lacking(array, self.values)]


@dataclass(frozen=True, slots=True)
class Remove(Operator):
    """The list that is there without any of these values."""

    names = ("Remove",)
    is_echoed = True

    values: tuple[Json, ...]

    @classmethod
    def parse(cls, key: str, value: Mapping[str, Json]) -> Operation:
        return cls(_objects(key, value, "objects to remove must be an array"))

    def field_type(self) -> FieldType | None:
        return _ARRAY

    def outcome(self, current: Json, path: str) -> Json:
        removed = {_identity(value) for value in self.values}
        return [item for item in _array(current, path) if _identity(item) not in removed]


@dataclass(frozen=True, slots=True)
class SetOnInsert(Operator):
    """The value if the write creates the object; else what is there."""

    names = ("SetOnInsert",)
    is_echoed = True

    value: Json

    @classmethod
    def parse(cls, key: str, value: Mapping[str, Json]) -> Operation:
        if value.get("amount") is None:
            raise InvalidJSON(f"{key}.amount: expected the value to set")
        # A relation is no value to set: one level down it is refused like in any value.
        return cls(normalise(value["amount"], f"{key}.amount", key.count(".") + 1))

    def field_type(self) -> FieldType | None:
        return infer(self.value)


@dataclass(frozen=True, slots=True)
class ChangeRelation(Operator):
    """Members to add to a relation and to take out; first of all emptied if ``clear``.

    ``target_class`` is None only if nothing is added or removed.
    """

    names = ("AddRelation", "RemoveRelation", "Batch")

    target_class: ClassName | None
    added: tuple[ObjectId, ...] = ()
    removed: tuple[ObjectId, ...] = ()
    clear: bool = False

    @classmethod
    def parse(cls, key: str, value: Mapping[str, Json]) -> Operation:
        if "." in key:
            raise InvalidKeyName(f"{shown(key)}: a relation is a field, not a part of one")
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
                # The last operation on a member wins.
                members[parse_object_id(str(member["objectId"]))] = adding
        if len(target_classes) > 1:
            raise IncorrectType(f"{key}: a relation has members of one class only")
        return cls(
            next(iter(target_classes), None),
            tuple(member for member, adding in members.items() if adding),
            tuple(member for member, adding in members.items() if not adding),
        )

    def field_type(self) -> FieldType | None:
        return None if self.target_class is None else FieldType("Relation", self.target_class)


Operation: TypeAlias = (
    Set | Delete | Increment | Add | AddUnique | Remove | SetOnInsert | ChangeRelation
)

OPERATORS: Final[Mapping[str, type[Operator]]] = {
    name: operator
    for operator in (Delete, Increment, Add, AddUnique, Remove, SetOnInsert, ChangeRelation)
    for name in operator.names
}
"""The operator of each ``__op``."""


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


def _array(current: Json, path: str) -> list[Json]:
    if current is None:
        return []
    if not isinstance(current, list):
        raise IncorrectType(f"{path}: expected an array to add to or remove from")
    return current


def _lacking(current: list[Json], values: tuple[Json, ...]) -> Iterator[Json]:
    identities = {_identity(item) for item in current}
    for value in values:
        key = _identity(value)
        if key not in identities:
            identities.add(key)
            yield value


def _identity(value: Json) -> Hashable:
    # Texts, usual numbers and pointers come first, since lists have up to a million of them. True
    # is no int here, and keys of other values are tuples.
    kind = type(value)
    if kind is str or (kind is int and -_EXACT < value < _EXACT):  # type: ignore[operator]
        return value  # type: ignore[return-value]  # cast() takes as long as all else
    if kind is float and value.is_integer() and -_EXACT < value < _EXACT:  # type: ignore
        return int(value)  # type: ignore[arg-type]
    if isinstance(value, dict):
        type_name = value.get("__type")
        # A file is known by its name: its url depends on the server that shows it.
        if type_name == "File":
            return ("File", value["name"])
        if type_name == "Pointer" and len(value) == 3:
            return ("Pointer", value["className"], value["objectId"])
    return cast(Hashable, frozen(value))


def add_numbers(a: int | float, b: int | float, path: str) -> int | float:
    """Return the sum: exact for integers, else of IEEE doubles. Raises ``IncorrectType``."""
    if isinstance(a, int) and isinstance(b, int):
        total = a + b
        if abs(total) >= _INTEGER_LIMIT:
            raise IncorrectType(f"{path}: the sum is too big")
        return total
    try:
        return canonical_number(float(a) + float(b), path)
    except OverflowError:
        raise IncorrectType(f"{path}: the sum is too big") from None
