"""Types of contract ABIs, and their values in JSON.

Clients write values as JSON: whole numbers or decimal texts, ``0x…`` for bytes and addresses, lists
for arrays, and objects (by the names of their parts) or lists for tuples. They read them by the
rules of events: integers of at most 48 bits are numbers, wider ones decimal texts; bytes are
``0x…``; tuples are objects, with "0", "1", … for parts without a name of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from eth_abi.codec import ABICodec
from eth_abi.decoding import StringDecoder
from eth_abi.encoding import TextStringEncoder
from eth_abi.exceptions import DecodingError, EncodingError
from eth_abi.registry import registry as _known_types

from chain.core.names import address_of

WIDEST_NUMBER: Final = 48  # bits of an integer that is a number in JSON
LARGEST_DATA: Final = 128 * 1024  # bytes of what a call hands over

_DEEPEST, _MOST_PARTS, _LONGEST_ARRAY = 8, 256, 4096
_INTEGER = re.compile(r"(u?)int([0-9]{0,3})")
_BYTES = re.compile(r"bytes([0-9]{1,2})")
_SUFFIX = re.compile(r"\[([0-9]{0,5})\]")
_DECIMAL = re.compile(r"-?[0-9]{1,78}")
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_NO_KEYS = frozenset({"__type", "__op", "__proto__", "constructor", "prototype"})


class BadAbi(ValueError):
    """An entry of an ABI can't be what it says; the text begins with its place."""


class BadValue(ValueError):
    """A value isn't of its type; the text begins with its place."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type. ``base`` is int, uint, bytes, function, address, bool, string or tuple; ``size`` is
    its bits or bytes, 0 for any; ``parts`` are a tuple's; ``lengths`` its array dimensions,
    innermost first, None for a dimension of any length."""

    base: str
    size: int = 0
    parts: tuple[Part, ...] = ()
    lengths: tuple[int | None, ...] = ()

    @property
    def spelling(self) -> str:
        """As signatures have it: ``uint256``, ``(address,bytes4[])[]``."""
        if self.base == "tuple":
            text = f"({','.join(part.type.spelling for part in self.parts)})"
        elif self.base == "function":
            # An address and a selector. Encoded as bytes24, but hashed under its own name.
            text = self.base
        else:
            text = f"{self.base}{self.size or ''}"
        return text + "".join(f"[{'' if n is None else n}]" for n in self.lengths)

    @property
    def item(self) -> Type:
        """The type of an array's items."""
        return Type(self.base, self.size, self.parts, self.lengths[:-1])


@dataclass(frozen=True, slots=True)
class Part:
    """A parameter, a result or a part of a tuple; its name may be empty."""

    name: str
    type: Type


def parts_of(entries: Any, place: str, depth: int = 0) -> tuple[Part, ...]:
    """The parameters that a list of an ABI describes. ``BadAbi``."""
    if not isinstance(entries, list | tuple) or len(entries) > _MOST_PARTS:
        raise BadAbi(f"{place}: expected a list of at most {_MOST_PARTS} parameters")
    if depth > _DEEPEST:
        raise BadAbi(f"{place}: tuples within tuples, more than {_DEEPEST} deep")
    parts = []
    for number, entry in enumerate(entries):
        here = f"{place}[{number}]"
        if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
            raise BadAbi(f"{here}: expected an object with a type")
        name = entry.get("name") or ""
        if not isinstance(name, str):
            raise BadAbi(f"{here}.name: expected a text")
        parts.append(Part(name, _type(entry["type"], entry.get("components"), here, depth)))
    return tuple(parts)


def _type(text: str, components: Any, place: str, depth: int) -> Type:
    base, bracket, suffix = text.partition("[")
    suffixes = bracket + suffix
    lengths = tuple(int(n) if n else None for n in _SUFFIX.findall(suffixes))
    is_whole = _SUFFIX.sub("", suffixes) == "" and len(lengths) <= _DEEPEST
    if not is_whole or any(n is not None and not 0 < n <= _LONGEST_ARRAY for n in lengths):
        raise BadAbi(f"{place}.type: {_shown(text)} is no type")
    if base == "tuple":
        parts = parts_of(components, f"{place}.components", depth + 1)
        if not parts:
            raise BadAbi(f"{place}.components: a tuple has parts")
        return Type("tuple", 0, parts, lengths)
    if base in ("address", "bool", "string", "bytes"):
        return Type(base, 0, (), lengths)
    if base == "function":
        return Type("function", 24, (), lengths)
    if match := _INTEGER.fullmatch(base):
        bits = int(match[2] or 256)
        if 8 <= bits <= 256 and bits % 8 == 0:
            return Type(f"{match[1]}int", bits, (), lengths)
    if (match := _BYTES.fullmatch(base)) and 1 <= int(match[1]) <= 32:
        return Type("bytes", int(match[1]), (), lengths)
    raise BadAbi(f"{place}.type: {_shown(text)} is no type")


def _shown(text: str) -> str:
    return repr(text[:40])


# -- From JSON ------------------------------------------------------------------------------------


def from_json(type_: Type, value: Any, place: str) -> Any:
    """The value as ``encode`` takes it. ``BadValue``, whose text begins with the place."""
    if type_.lengths:
        return _list_from_json(type_, value, place)
    if type_.base == "tuple":
        return tuple(all_from_json(type_.parts, value, place))
    if type_.base in ("int", "uint"):
        return _integer(type_, value, place)
    if type_.base in ("bytes", "function"):
        return _bytes(type_, value, place)
    if type_.base == "address":
        try:
            return address_of(value)
        except ValueError as error:
            raise BadValue(f"{place}: {error}") from None
    if type_.base == "bool":
        if not isinstance(value, bool):
            raise BadValue(f"{place}: expected true or false")
        return value
    if not isinstance(value, str):
        raise BadValue(f"{place}: expected a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadValue(f"{place}: expected a text that UTF-8 can hold") from None
    return value


def all_from_json(parts: Sequence[Part], value: Any, place: str) -> list[Any]:
    """The values of several parts, from a list or from an object by their names."""
    names = keys_of(parts)
    if isinstance(value, Mapping):
        for name in value:
            if name not in names:
                raise BadValue(f"{place}: there is no {_shown(str(name))}, but {_listed(names)}")
        lacking = [name for name in names if name not in value]
        if lacking:
            raise BadValue(f"{place}.{lacking[0]}: missing ({_of(parts, names, lacking[0])})")
        values: Sequence[Any] = [value[name] for name in names]
        places = [f"{place}.{name}" for name in names]
    else:
        if not isinstance(value, list | tuple):
            raise BadValue(f"{place}: expected a list, or an object by names")
        if len(value) != len(parts):
            raise BadValue(f"{place}: expected {len(parts)} values, got {len(value)}")
        values = value
        places = [f"{place}[{number}]" for number in range(len(parts))]
    return [
        from_json(part.type, item, where)
        for part, item, where in zip(parts, values, places, strict=True)
    ]


def _of(parts: Sequence[Part], names: Sequence[str], name: str) -> str:
    return parts[names.index(name)].type.spelling


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _list_from_json(type_: Type, value: Any, place: str) -> list[Any]:
    length = type_.lengths[-1]
    if not isinstance(value, list | tuple) or len(value) > _LONGEST_ARRAY:
        raise BadValue(f"{place}: expected a list of at most {_LONGEST_ARRAY} values")
    if length is not None and len(value) != length:
        raise BadValue(f"{place}: expected {length} values, got {len(value)}")
    item = type_.item
    return [
        from_json(item, item_value, f"{place}[{number}]") for number, item_value in enumerate(value)
    ]


def _integer(type_: Type, value: Any, place: str) -> int:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadValue(f"{place}: expected a whole number ({type_.spelling}), or its decimal text")
    least, most = (0, 2**type_.size - 1)
    if type_.base == "int":
        least, most = -(2 ** (type_.size - 1)), 2 ** (type_.size - 1) - 1
    if not least <= value <= most:
        raise BadValue(f"{place}: out of the range of {type_.spelling}")
    return value


def _bytes(type_: Type, value: Any, place: str) -> bytes:
    if isinstance(value, str) and _HEX.fullmatch(value):
        value = bytes.fromhex(value[2:])
    if not isinstance(value, bytes) or (type_.size and len(value) != type_.size):
        size = f"{type_.size} bytes" if type_.size else "bytes"
        raise BadValue(f"{place}: expected {size} (0x and hexadecimal digits)")
    return value


# -- Names ----------------------------------------------------------------------------------------


def keys_of(parts: Sequence[Part]) -> list[str]:
    """What the parts are called: their names, or their numbers where a name is missing, is another
    part's as well, or would be taken for something else by clients (``__type``, ``constructor``).
    """
    names = [part.name for part in parts]
    return [
        name if _KEY.fullmatch(name) and name not in _NO_KEYS and names.count(name) == 1 else str(n)
        for n, name in enumerate(names)
    ]


# -- Bytes ----------------------------------------------------------------------------------------

_types = _known_types.copy()  # type: ignore[no-untyped-call]
_types.unregister("string")
_types.register(
    # Contracts may answer texts that aren't UTF-8; the rest of the answer is good.
    "string",
    TextStringEncoder,
    StringDecoder(handle_string_errors="replace"),  # type: ignore[no-untyped-call]
    label="string",
)
_codec = ABICodec(_types)


def encode(parts: Sequence[Part], values: Sequence[Any]) -> bytes:
    """The parameters of a call, from values that ``from_json`` gave."""
    try:
        return _codec.encode([part.type.spelling for part in parts], list(values))
    except EncodingError as error:
        raise BadValue(f"args: {error}") from None


def decode(parts: Sequence[Part], data: bytes) -> tuple[Any, ...]:
    """The values in an answer. ``BadValue`` if it isn't one of these types."""
    try:
        return tuple(_codec.decode([part.type.spelling for part in parts], data))
    except (DecodingError, OverflowError, ValueError) as error:
        raise BadValue(f"the contract's answer isn't what its ABI says: {error}") from None
