"""Contracts that run the code of others: which calls of a node tell, and which logs.

A proxy (EIP-1967 with an implementation or a beacon, its predecessor of OpenZeppelin, EIP-1167)
runs the code of an implementation, a diamond (EIP-2535) that of its facets. What they log stands
under the address of the proxy or the diamond, and the events are those of the others' ABIs.
"""

from __future__ import annotations

import json
import re
from binascii import unhexlify
from collections.abc import Iterable, Sequence
from typing import Any, Final

from eth_utils import keccak

from chain.core.abi.contract import events_of
from chain.core.abi.functions import selector
from chain.core.abi.logs import Vocabulary
from chain.core.abi.types import parts_of
from chain.core.abi.values import Source, fields_reader
from chain.core.abi.word_readers import FAULTS
from chain.core.names import ZERO_ADDRESS
from chain.core.node import Log

MOST_NAMED: Final = 512
"""Addresses behind one contract, its former ones included."""

Call = tuple[str, Sequence[Any]]


def _slot(text: str, less: int = 0) -> str:
    return f"0x{int.from_bytes(keccak(text=text), 'big') - less:064x}"


_IMPLEMENTATION_SLOTS: Final = (
    _slot("eip1967.proxy.implementation", 1),
    _slot("org.zeppelinos.proxy.implementation"),
)
_BEACON_SLOT: Final = _slot("eip1967.proxy.beacon", 1)
_MINIMAL: Final = re.compile(
    r"0x363d3d373d3d3d363d73([0-9a-f]{40})5af43d82803e903d91602b57fd5bf3", re.IGNORECASE
)
_WORD_WITH_ADDRESS: Final = re.compile(r"0x0{24}([0-9a-fA-F]{40})")
_FACETS: Final = selector("facets()")
_IMPLEMENTATION: Final = selector("implementation()")

_CUT: Final = {"name": "_diamondCut", "type": "tuple[]"}
_FACET_PARTS = [{"name": "facet", "type": "address"}, {"name": "selectors", "type": "bytes4[]"}]
_CUT_PARTS = [_FACET_PARTS[0], {"name": "action", "type": "uint8"}, _FACET_PARTS[1]]
EVENTS: Final = tuple(
    events_of(
        [
            {"type": "event", "name": name, "inputs": inputs}
            for name, inputs in (
                ("Upgraded", [{"name": "implementation", "type": "address", "indexed": True}]),
                ("BeaconUpgraded", [{"name": "beacon", "type": "address", "indexed": True}]),
                (
                    "DiamondCut",
                    [
                        _CUT | {"components": _CUT_PARTS},
                        {"name": "_init", "type": "address"},
                        {"name": "_calldata", "type": "bytes"},
                    ],
                ),
            )
        ]
    )
)
"""What proxies and diamonds log when their code changes, whether their own ABIs have it or not."""

TOPICS: Final = frozenset(event.topic for event in EVENTS)
_vocabulary = Vocabulary(EVENTS)
_read_facets = fields_reader(
    [
        ("facets", part.type)
        for part in parts_of([{"type": "tuple[]", "components": _FACET_PARTS}], "facets")
    ]
)


def questions(address: str) -> list[Call]:
    """The calls whose answers ``addresses_in`` reads."""
    return [
        *(("eth_getStorageAt", (address, slot, "latest")) for slot in _IMPLEMENTATION_SLOTS),
        ("eth_getCode", (address, "latest")),
        ("eth_call", ({"to": address, "data": _FACETS}, "latest")),
        ("eth_getStorageAt", (address, _BEACON_SLOT, "latest")),
    ]


QUESTIONS: Final = len(questions(ZERO_ADDRESS))


def addresses_in(answers: Sequence[Any]) -> tuple[list[str], str | None]:
    """The addresses of the code that a contract runs, in lower case, and of its beacon. Answers
    that are errors, or none at all, tell nothing."""
    *words, code, facets, beacon = answers
    addresses = [address for word in words if (address := address_in(word))]
    if isinstance(code, str) and (minimal := _MINIMAL.fullmatch(code)):
        addresses.append(f"0x{minimal[1].lower()}")
    return [*addresses, *_facets_in(facets)][:MOST_NAMED], address_in(beacon)


def beacon_question(beacon: str) -> Call:
    """The call whose answer is a word with the address of the implementation."""
    return "eth_call", ({"to": beacon, "data": _IMPLEMENTATION}, "latest")


def address_in(word: Any) -> str | None:
    """The address that a word holds, in lower case; None for zero and for what is no address."""
    match = _WORD_WITH_ADDRESS.fullmatch(word) if isinstance(word, str) else None
    address = f"0x{match[1].lower()}" if match else ZERO_ADDRESS
    return None if address == ZERO_ADDRESS else address


def _facets_in(answer: Any) -> list[str]:
    if not isinstance(answer, str) or len(answer) <= 2:
        return []
    try:
        [text] = _read_facets(Source(unhexlify(answer[2:])), 0)
    except FAULTS:
        return []
    return [facet["facet"].lower() for facet in json.loads(f"{{{text}}}")["facets"]]


def named_by(logs: Iterable[Log]) -> dict[str, list[str]]:
    """The contracts whose code these logs say to be another one, in lower case, each with the
    addresses that they name."""
    names: dict[str, list[str]] = {}
    for log in logs:
        if log.topics and log.topics[0] in TOPICS:
            name, text = _vocabulary.read(log.topics, log.data)
            named = names.setdefault(log.address.lower(), [])
            args = json.loads(text)
            if name == "Upgraded":
                named.append(args["implementation"].lower())
            elif name == "DiamondCut":
                named += [cut["facet"].lower() for cut in args["_diamondCut"]]
    return names
