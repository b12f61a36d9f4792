"""The compiled contracts of ``contracts/``, and calls of them in the encoding of the EVM.

Encoded with eth_abi, not with web3: what the service reads with its own decoders was written by
somebody else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import eth_abi
from eth_utils import keccak, to_checksum_address
from eth_utils.abi import collapse_if_tuple

if TYPE_CHECKING:
    from tests.evm.node import Node

FOLDER = Path(__file__).resolve().parent / "artefacts"

Abi = list[dict[str, Any]]


@dataclass(frozen=True)
class Artefact:
    """A contract that can be put on a chain."""

    name: str
    abi: Abi
    bytecode: str

    def creation(self, *arguments: Any) -> str:
        """The data of the transaction that makes the contract."""
        makers = [item for item in self.abi if item["type"] == "constructor"]
        types = _types(makers[0]) if makers else []
        return self.bytecode + eth_abi.encode(types, arguments).hex()

    def without(self, *names: str) -> Abi:
        """Its ABI, as it would be registered without knowledge of these entries."""
        return [item for item in self.abi if item.get("name") not in names]


@cache
def artefact(name: str) -> Artefact:
    """The artefact of a contract of ``contracts/``: ``Gem``, ``Coin``, ``Diamond``, ``Zoo``, …"""
    held = json.loads((FOLDER / f"{name}.json").read_text())
    return Artefact(name, held["abi"], held["bytecode"])


def selectors(abi: Abi) -> list[str]:
    """The selectors of an ABI's functions, as a diamond's cut names them."""
    functions = [item for item in abi if item["type"] == "function"]
    return ["0x" + _selector(item).hex() for item in functions]


def topic(abi: Abi, event: str) -> str:
    """The first topic of an event, which is named by its name or by its whole signature."""
    results = _find(abi, "event", event)
    return "0x" + keccak(text=signature(results)).hex()


def signature(item: dict[str, Any]) -> str:
    return f"{item['name']}({','.join(_types(item))})"


@dataclass(frozen=True)
class Contract:
    """A contract on a node's chain. Methods are named by name, or by signature where one name has
    several."""

    node: Node
    address: str
    abi: Abi

    def data(self, method: str, *arguments: Any) -> str:
        """A call as the data of a transaction."""
        item = _find(self.abi, "function", method, len(arguments))
        return "0x" + (_selector(item) + eth_abi.encode(_types(item), arguments)).hex()

    def request(self, method: str, *arguments: Any, sender: str | None = None) -> dict[str, Any]:
        """A call as a transaction that the node signs, for instance for ``Node.reorg``."""
        return {
            "from": sender or self.node.accounts[0],
            "to": self.address,
            "data": self.data(method, *arguments),
        }

    def transact(self, method: str, *arguments: Any, **more: Any) -> str:
        """Send a transaction from the first account, or from ``sender``; its hash. Other fields of
        the transaction (``value``, ``gas``, ``nonce``, ``maxFeePerGas``, …) may be given as well.
        The node doesn't try the call first: one that fails is mined as such."""
        request = self.request(method, *arguments, sender=more.pop("sender", None))
        return self.node.send({**request, **more})

    def call(
        self, method: str, *arguments: Any, sender: str | None = None, block: str = "latest"
    ) -> Any:
        """What a call gives: one value, or a tuple of several. ``NodeError`` if it fails."""
        item = _find(self.abi, "function", method, len(arguments))
        request = {"to": self.address, "data": self.data(method, *arguments)}
        if sender is not None:
            request["from"] = sender
        answer = bytes.fromhex(self.node.rpc("eth_call", request, block)[2:])
        decoded = eth_abi.decode(_types(item, "outputs"), answer)
        return decoded[0] if len(decoded) == 1 else decoded

    def with_abi(self, abi: Abi) -> Contract:
        """The same place seen through another ABI: a facet's, an implementation's."""
        return Contract(self.node, self.address, abi)


def put(node: Node, name: str, *arguments: Any, sender: str | None = None) -> Contract:
    """Put a contract of ``contracts/`` on the node's chain. The block must be mined by the node
    itself; see ``Node.automine``."""
    made = artefact(name)
    request = {"from": sender or node.accounts[0], "data": made.creation(*arguments)}
    receipt = node.mined(node.send(request))
    assert receipt["status"] == "0x1", receipt
    return Contract(node, to_checksum_address(receipt["contractAddress"]), made.abi)


@dataclass(frozen=True)
class DiamondOnChain:
    """A diamond, and the facets that it was made of by name."""

    contract: Contract
    facets: dict[str, Contract]

    @property
    def address(self) -> str:
        return self.contract.address

    def as_(self, facet: str) -> Contract:
        """The diamond seen as one of its facets."""
        return self.contract.with_abi(artefact(facet).abi)


def put_diamond(node: Node, *more: str, owner: str | None = None) -> DiamondOnChain:
    """A diamond with cut, loupe and ownership, and with ``more`` facets (``BadgeFacet``, …)."""
    names = ("CutFacet", "LoupeFacet", "OwnershipFacet", *more)
    facets = {name: put(node, name) for name in names}
    cuts = [cut(facet) for facet in facets.values()]
    return DiamondOnChain(put(node, "Diamond", owner or node.accounts[0], cuts), facets)


def cut(facet: Contract, action: int = 0) -> tuple[str, int, list[bytes]]:
    """A cut with all functions of a facet: 0 adds, 1 replaces, 2 removes."""
    chosen = [bytes.fromhex(selector[2:]) for selector in selectors(facet.abi)]
    return ("0x" + "00" * 20 if action == 2 else facet.address, action, chosen)


def _types(item: dict[str, Any], side: str = "inputs") -> list[str]:
    return [collapse_if_tuple(dict(entry)) for entry in item[side]]


def _selector(item: dict[str, Any]) -> bytes:
    return keccak(text=signature(item))[:4]


def _find(abi: Abi, kind: str, expected: str, count: int | None = None) -> dict[str, Any]:
    results = [
        item
        for item in abi
        if item["type"] == kind
        and (signature(item) == expected if "(" in expected else item["name"] == expected)
        and (count is None or len(item["inputs"]) == count)
    ]
    assert len(results) == 1, f"{len(results)} entries are {expected}"
    return results[0]
