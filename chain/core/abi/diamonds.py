"""Diamonds (EIP-2535): which selectors a facet brings, and the cut that adds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from chain.core.abi.functions import Function, selector
from chain.core.abi.types import decode, encode, parts_of
from chain.core.names import ZERO_ADDRESS, checksummed

_CUT = "diamondCut((address,uint8,bytes4[])[],address,bytes)"
CUT_SELECTOR: Final = selector(_CUT)
LOUPE_SELECTOR: Final = selector("facetAddress(bytes4)")

_STANDARD: Final = frozenset(
    selector(each)
    for each in (
        _CUT,
        "facets()",
        "facetFunctionSelectors(address)",
        "facetAddresses()",
        "facetAddress(bytes4)",
        "supportsInterface(bytes4)",
        "owner()",
        "transferOwnership(address)",
    )
)
"""Of EIP-2535, EIP-165 and EIP-173: facets inherit them, and a diamond has them once."""

_SETTING_UP: Final = selector("init(bytes)")
"""For the call that a cut may make; never a function of the diamond."""

_ADD: Final = 0
_CUT_INPUTS = parts_of(
    [
        {
            "type": "tuple[]",
            "components": [{"type": "address"}, {"type": "uint8"}, {"type": "bytes4[]"}],
        },
        {"type": "address"},
        {"type": "bytes"},
    ],
    "diamondCut",
)
_SELECTOR = parts_of([{"type": "bytes4"}], "facetAddress")
_ADDRESS = parts_of([{"type": "address"}], "facetAddress")


def brought(functions: Sequence[Function]) -> dict[str, str]:
    """The signatures of a facet by their selectors, in the order of the ABI; without
    ``init(bytes)``."""
    signatures = {each.selector: each.signature for each in functions}
    signatures.pop(_SETTING_UP, None)
    return signatures


def to_add(
    brings: Mapping[str, str], present: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The selectors to add to a diamond, and those that collide, with the facets that have them.

    ``present`` are the facets by selector, as the loupe tells. The standard functions of diamonds
    don't collide: those that are there already stay as they are.
    """
    add = [selector for selector in brings if selector not in present]
    collisions = {
        selector: present[selector]
        for selector in brings
        if selector in present and selector not in _STANDARD
    }
    return add, collisions


def question(selector_: str) -> str:
    """The call that asks a loupe which facet has a selector."""
    return LOUPE_SELECTOR + encode(_SELECTOR, [bytes.fromhex(selector_[2:])]).hex()


def facet_in(answer: bytes) -> str | None:
    """The loupe's answer: an address, or None for no facet. ``BadValue`` if it is no answer."""
    (address,) = decode(_ADDRESS, answer)
    return None if address == ZERO_ADDRESS else checksummed(address)


def cut(facet: str, selectors: Sequence[str]) -> str:
    """The call that adds these selectors of a facet, and sets nothing up."""
    raw = [bytes.fromhex(selector[2:]) for selector in selectors]
    values = [[(facet, _ADD, raw)], ZERO_ADDRESS, b""]
    return CUT_SELECTOR + encode(_CUT_INPUTS, values).hex()


def added_by(data: str) -> frozenset[str]:
    """The selectors that such a call adds; none if it is another one."""
    if not data.startswith(CUT_SELECTOR):
        return frozenset()
    cuts, _, _ = decode(_CUT_INPUTS, bytes.fromhex(data[len(CUT_SELECTOR) :]))
    return frozenset(
        f"0x{selector.hex()}" for _, action, all_ in cuts if action == _ADD for selector in all_
    )
