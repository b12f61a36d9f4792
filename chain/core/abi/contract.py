"""Contract ABIs in JSON, as compilers write them: checked, and read into events.

``check_abi`` is for what clients send: it names the first thing that is wrong. ``events_of`` is for
what is stored: an event that it can't understand is left out, and its logs stay raw.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from eth_utils import keccak

from chain.core.abi.types import BadAbi, Part, parts_of
from chain.core.abi.words import MOST_IN_PLACE, is_readable

LONGEST_NAME: Final = 200
"""Characters of a contract's name, which is in an index with its events."""
MOST_ENTRIES: Final = 10_000
MOST_TOPICS: Final = 4

TRANSFER: Final = "Transfer"
_TRANSFER_SIGNATURE: Final = "Transfer(address,address,uint256)"
_TRANSFER_FORMS: Final = frozenset({(True, True, False), (True, True, True), (False, False, False)})
"""Which inputs of a token's ``Transfer`` are indexed: of ERC-20, of ERC-721, of older tokens."""

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,255}")
_WITH_NAME = frozenset({"function", "event", "error"})
_WITH_INPUTS = _WITH_NAME | {"constructor"}
_ENTRY_TYPES = _WITH_INPUTS | {"fallback", "receive"}


@dataclass(frozen=True)
class Event:
    """An event of an ABI. ``indexed`` says of each input whether it stands in a topic."""

    name: str
    inputs: tuple[Part, ...]
    indexed: tuple[bool, ...]
    is_anonymous: bool = False

    @cached_property
    def signature(self) -> str:
        return f"{self.name}({','.join(part.type.spelling for part in self.inputs)})"

    @cached_property
    def topic(self) -> str:
        """The first topic of its logs, unless it is anonymous."""
        return "0x" + keccak(text=self.signature).hex()

    @property
    def is_token_transfer(self) -> bool:
        """Whether it is the ``Transfer`` of a token."""
        return (
            self.signature == _TRANSFER_SIGNATURE
            and self.indexed in _TRANSFER_FORMS
            and not self.is_anonymous
        )

    @property
    def topic_count(self) -> int:
        """How many topics its logs have."""
        return sum(self.indexed) + (not self.is_anonymous)


def check_abi(abi: Any) -> None:
    """Raise ``BadAbi`` for the first thing in a client's ABI that can't be; its text begins with
    the place, such as ``abi[3].inputs[0].type``."""
    if not isinstance(abi, list | tuple):
        raise BadAbi("abi: expected a list")
    if len(abi) > MOST_ENTRIES:
        raise BadAbi(f"abi: more than {MOST_ENTRIES} entries")
    for number, entry in enumerate(abi):
        _check_entry(entry, f"abi[{number}]")


def events_of(abi: Any) -> list[Event]:
    """The events of a stored ABI, in its order."""
    events = []
    for entry in abi if isinstance(abi, list | tuple) else ():
        if isinstance(entry, Mapping) and entry.get("type") == "event":
            try:
                events.append(_event(entry, ""))
            except BadAbi:
                continue
    return events


def _check_entry(entry: Any, place: str) -> None:
    if not isinstance(entry, Mapping):
        raise BadAbi(f"{place}: expected an object")
    # A function without a type is one, too.
    kind = entry.get("type", "function")
    if not isinstance(kind, str) or kind not in _ENTRY_TYPES:
        raise BadAbi(f"{place}.type: expected one of {', '.join(sorted(_ENTRY_TYPES))}")
    if kind == "event":
        _event(entry, place)
        return
    if kind in _WITH_NAME:
        _name(entry, place)
    if kind in _WITH_INPUTS:
        parts_of(entry.get("inputs", ()), f"{place}.inputs")
    if kind == "function":
        parts_of(entry.get("outputs") or (), f"{place}.outputs")


def _event(entry: Mapping[str, Any], place: str) -> Event:
    name = _name(entry, place)
    is_anonymous = _flag(entry, "anonymous", place)
    declared = entry.get("inputs", ())
    inputs = parts_of(declared, f"{place}.inputs")
    indexed = tuple(
        _flag(entry_of_input, "indexed", f"{place}.inputs[{number}]")
        for number, entry_of_input in enumerate(declared)
    )
    event = Event(name, inputs, indexed, is_anonymous)
    if event.topic_count > MOST_TOPICS:
        raise BadAbi(f"{place}.inputs: more indexed ones than a log has topics for")
    for number, entry_of_input in enumerate(inputs):
        if not is_readable(entry_of_input.type):
            raise BadAbi(f"{place}.inputs[{number}].type: more than {MOST_IN_PLACE} words in place")
    return event


def _name(entry: Mapping[str, Any], place: str) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadAbi(f"{place}.name: expected a name of letters, digits, _ and $")
    return name


def _flag(entry: Mapping[str, Any], key: str, place: str) -> bool:
    value = entry.get(key, False)
    if not isinstance(value, bool):
        raise BadAbi(f"{place}.{key}: expected true or false")
    return value
