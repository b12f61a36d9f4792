"""The functions and errors of a contract's ABI: finding them, calling them, reading what comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from eth_utils import keccak

from chain.core.abi.types import (
    LARGEST_DATA,
    BadAbi,
    BadValue,
    Part,
    all_from_json,
    decode,
    encode,
    keys_of,
    parts_of,
)
from chain.core.abi.values import Source, fields_reader
from chain.core.abi.words import is_readable

_READING = ("view", "pure")
_LONGEST_REASON: Final = 1000
_MOST_SHOWN: Final = 5

_PANICS: Final = {
    0x00: "a fault of the compiler",
    0x01: "an assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x21: "no value of the enumeration",
    0x22: "storage of bytes that is broken",
    0x31: "pop of an empty array",
    0x32: "index out of bounds",
    0x41: "too much memory",
    0x51: "a function that isn't set",
}


class NoSuchFunction(ValueError):
    """The ABI has no function that fits, or several."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a contract."""

    name: str
    inputs: tuple[Part, ...]
    outputs: tuple[Part, ...]
    mutability: str

    @property
    def signature(self) -> str:
        """Such as ``transfer(address,uint256)``."""
        return signature(self.name, self.inputs)

    @property
    def selector(self) -> str:
        return selector(self.signature)

    @property
    def only_reads(self) -> bool:
        return self.mutability in _READING

    def call_data(self, args: Any) -> str:
        """What a call hands over (0x…), from arguments in JSON. ``BadValue`` names the place."""
        values = all_from_json(self.inputs, args, "args")
        data = encode(self.inputs, values)
        if len(data) > LARGEST_DATA:
            raise BadValue(f"args: more than {LARGEST_DATA // 1024} KB")
        return f"{self.selector}{data.hex()}"

    def result(self, answer: bytes) -> Any:
        """What a call answered, in JSON: nothing, the value, or an object of several values."""
        if not self.outputs:
            return None
        values = read(self.outputs, answer)
        return next(iter(values.values())) if len(values) == 1 else values


def read(parts: Sequence[Part], data: bytes) -> dict[str, Any]:
    """The values of a contract's answer by name, in JSON. ``BadValue`` if it isn't one of these
    types. The work is bounded by the size of the data, not by the lengths it states."""
    types = [part.type for part in parts]
    try:
        if not all(map(is_readable, types)):
            raise ValueError("a type that is too large")
        fields = fields_reader([*zip(keys_of(parts), types, strict=True)])(Source(data), 0)
    except ValueError as error:
        raise BadValue(f"the contract's answer isn't what its ABI says: {error}") from None
    values: dict[str, Any] = msgspec.json.decode("{" + ",".join(fields) + "}")
    return values


def signature(name: str, inputs: Sequence[Part]) -> str:
    return f"{name}({','.join(part.type.spelling for part in inputs)})"


def selector(signature_: str) -> str:
    """The first four bytes of a signature's hash, as text."""
    return f"0x{keccak(text=signature_)[:4].hex()}"


def functions_of(abi: Any, place: str = "abi") -> list[Function]:
    """The functions of an ABI. ``BadAbi`` names the entry that is none."""
    functions = []
    for here, entry in _entries(abi, "function", place):
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            raise BadAbi(f"{here}.name: expected the function's name")
        mutability = entry.get("stateMutability")
        if not isinstance(mutability, str):
            # As ABIs had it before Solidity 0.6.
            reads, pays = entry.get("constant") is True, entry.get("payable") is True
            mutability = "view" if reads else "payable" if pays else "nonpayable"
        functions.append(
            Function(
                name,
                parts_of(entry.get("inputs", []), f"{here}.inputs"),
                parts_of(entry.get("outputs", []), f"{here}.outputs"),
                mutability,
            )
        )
    return functions


def _entries(abi: Any, kind: str, place: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    if not isinstance(abi, list | tuple):
        raise BadAbi(f"{place}: expected a list")
    for number, entry in enumerate(abi):
        # A function without a type is one, too.
        if isinstance(entry, Mapping) and entry.get("type", "function") == kind:
            yield f"{place}[{number}]", entry


def named(functions: Sequence[Function], method: str) -> list[Function]:
    """Those of this name, or the one of this signature; each selector once."""
    by_signature = {
        each.selector: each
        for each in functions
        if method == (each.signature if "(" in method else each.name)
    }
    return list(by_signature.values())


def chosen(candidates: Sequence[Function], method: str, args: Any) -> Function:
    """The one that these arguments are for. ``NoSuchFunction`` says which there are."""
    if not candidates:
        raise NoSuchFunction(f"there is no method {method[:80]!r}")
    fitting = [each for each in candidates if _takes(each, args)]
    if len(fitting) == 1 or len(candidates) == 1:
        return (fitting or candidates)[0]
    signatures = ", ".join(each.signature for each in (fitting or candidates)[:_MOST_SHOWN])
    if not fitting:
        raise NoSuchFunction(f"none of these takes such arguments: {signatures}")
    raise NoSuchFunction(f"there are several, so name one by its signature: {signatures}")


def _takes(function: Function, args: Any) -> bool:
    if isinstance(args, Mapping):
        return set(args) == set(keys_of(function.inputs))
    return isinstance(args, list | tuple) and len(args) == len(function.inputs)


# -- Reverts --------------------------------------------------------------------------------------


def revert_reason(data: str | None, abis: Iterable[Any], message: str = "") -> str:
    """What a contract says of its refusal, for people: the text of ``require``, the name and the
    arguments of an error of one of these ABIs, what a panic means, else ``message`` of the node."""
    raw = _raw(data)
    if raw:
        reason = _said(raw, abis)
        if reason is not None:
            return reason[:_LONGEST_REASON]
    _, _, text = message.partition("execution reverted")
    text = text.strip(" :\"'")
    if text and not text.startswith("0x"):
        return text[:_LONGEST_REASON]
    return f"an error that no registered ABI has ({raw[:4].hex()})" if raw else "no reason given"


def _raw(data: str | None) -> bytes:
    try:
        return bytes.fromhex(data.removeprefix("0x")) if data else b""
    except ValueError:
        return b""


def _said(raw: bytes, abis: Iterable[Any]) -> str | None:
    head, arguments = f"0x{raw[:4].hex()}", raw[4:]
    try:
        if head == _ERROR:
            return str(decode(_TEXT, arguments)[0]) or "no reason given"
        if head == _PANIC:
            code = decode(_NUMBER, arguments)[0]
            return f"Panic 0x{code:02x}: {_PANICS.get(code, 'unknown')}"
    except BadValue:
        return None
    for abi in abis:
        try:
            for here, entry in _entries(abi, "error", "abi"):
                name = str(entry.get("name"))
                inputs = parts_of(entry.get("inputs", []), here)
                if selector(signature(name, inputs)) == head:
                    return f"{name}({_shown(inputs, read(inputs, arguments))})"
        except ValueError:
            continue
    return None


def _shown(inputs: Sequence[Part], values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}: {value}" if part.name else f"{value}"
        for part, (name, value) in zip(inputs, values.items(), strict=True)
    )


_TEXT = parts_of([{"type": "string"}], "")
_NUMBER = parts_of([{"type": "uint256"}], "")
_ERROR = selector("Error(string)")
_PANIC = selector("Panic(uint256)")
