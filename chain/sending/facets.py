"""Adding a facet to a diamond (EIP-2535): looked up, tried, signed, sent, followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from backend.kernel.errors import ScriptFailed
from chain.core.abi import diamonds
from chain.core.abi.types import BadValue
from chain.core.node import Node
from chain.models import Sending, SmartContract
from chain.rpc import contracts
from chain.rpc.contracts import Call, Reverted
from chain.sending import nonces
from chain.sending.contracts import abis_of, facet_named, functions_in, on_network
from chain.sending.node_access import ask, known_network
from chain.sending.outgoing import send, usable_signer
from objects.database import maintenance

PURPOSE: Final = "addDiamondFacet"
_MOST_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Added:
    """A cut that is under way, and the selectors that it adds."""

    transaction_hash: str
    selectors: list[str]


def add_facet(network_id: int, diamond: str, facet_name: str) -> Added:
    """Have the network's signer add the functions of a registered facet to a diamond.

    Functions of the facet that the diamond has already are a collision, ``ScriptFailed`` with their
    selectors; but for those that every diamond has (cut, loupe, ERC-165, ERC-173), which are left
    out then. What ``send`` raises is raised as well. Several calls at once make one cut.
    """
    maintenance.check()
    known_network(network_id)
    facet = facet_named(network_id, facet_name)
    brings = diamonds.brought(functions_in(facet))
    if not brings or not facet.address:
        raise ScriptFailed(f"The ABI of {facet_name!r} has no functions to add")
    usable_signer(network_id)
    earlier = _Earlier(network_id, diamond)
    present = ask(network_id, lambda node: _present(node, diamond, facet, [*brings]))
    selectors, collisions = diamonds.to_add(brings, present)
    if collisions:
        raise ScriptFailed(f"The diamond has these functions already: {_told(collisions, brings)}")
    if not selectors:
        raise ScriptFailed(f"The diamond has all functions of {facet_name!r} already")
    data = diamonds.cut(facet.address, selectors)

    def same() -> str | None:
        return earlier.with_the_same(data)

    registered = on_network(network_id).filter(address=diamond)
    try:
        sent = send(
            network_id,
            diamond,
            data,
            purpose=PURPOSE,
            abis=abis_of(network_id, facet, *registered),
            instead=same,
        )
    except ScriptFailed:
        # Refused since the same cut came before it, at the same moment?
        existing = same()
        if existing is None:
            raise
        sent = existing
    return Added(sent, selectors)


class _Earlier:
    """The cuts of a diamond that the look at its loupe doesn't show for sure: those under way at
    the time, and all that came later."""

    def __init__(self, network_id: int, diamond: str) -> None:
        self._cuts = Sending.objects.filter(network_id=network_id, to=diamond, purpose=PURPOSE)
        under_way = self._cuts.filter(state__in=(nonces.SIGNED, nonces.SENT))
        self._waiting = [*under_way.values_list("id", flat=True)]
        self._last = Sending.objects.order_by("-id").values_list("id", flat=True).first() or 0

    def with_the_same(self, data: str) -> str | None:
        """The hash of one that does the same. ``ScriptFailed`` for one that adds some of it."""
        adds = diamonds.added_by(data)
        live = self._cuts.exclude(state__in=(nonces.REFUSED, nonces.LOST, nonces.REPLACED))
        waiting = live.filter(id__in=self._waiting, state__in=(nonces.SIGNED, nonces.SENT))
        for row in (waiting | live.filter(id__gt=self._last)).order_by("-id"):
            if row.data == data:
                return row.hash
            both = adds & diamonds.added_by(row.data)
            if both:
                raise ScriptFailed(
                    f"The transaction {row.hash} is adding these functions to the diamond:"
                    f" {', '.join(sorted(both)[:_MOST_SHOWN])}"
                )
        return None


def _present(
    node: Node, diamond: str, facet: SmartContract, selectors: Sequence[str]
) -> dict[str, str]:
    """The facets that have these selectors already, as the diamond's loupe tells."""
    assert facet.address is not None
    for what, address in (("diamondAddress", diamond), ("facet", facet.address)):
        if not contracts.has_code(node, address):
            raise ScriptFailed(f"{what}: there is no contract at {address}")
    questions = [Call(diamond, diamonds.question(each)) for each in selectors]
    facets = {}
    for selector, answer in zip(selectors, contracts.calls(node, questions), strict=True):
        try:
            address = diamonds.facet_in(_answered(answer))
        except BadValue:
            raise ScriptFailed(
                f"diamondAddress: the contract at {diamond} has no loupe (facetAddress)"
            ) from None
        if address is not None:
            facets[selector] = address
    return facets


def _answered(answer: bytes | Reverted) -> bytes:
    if isinstance(answer, Reverted):
        raise BadValue("reverted")
    return answer


def _told(collisions: dict[str, str], brings: dict[str, str]) -> str:
    sentences = [
        f"{selector} {brings[selector]} (of {facet})" for selector, facet in collisions.items()
    ]
    more = len(sentences) - _MOST_SHOWN
    return ", ".join(sentences[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
