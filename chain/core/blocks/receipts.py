"""The receipts of a whole block: their root, and the logs in them.

A header commits to the receipts of its block by the root of a Merkle-Patricia trie (Yellow Paper,
section 4.3.2 and appendix D) of receipts as EIP-2718 encodes them. Receipts with the right root are
complete, and status, gas and logs are those of the block; hashes of transactions aren't part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from eth_utils import keccak
from msgspec.structs import replace

from chain.core.blocks import rlp
from chain.core.blocks.bloom import bloom_of
from chain.core.blocks.hexadecimal import bytes_of
from chain.core.node import Header, Log, LogFilter, LoggedReceipt, Receipts

_BLOOM_BYTES: Final = 256
_SHORT: Final = 32  # bytes: nodes below are part of the node above them


def logs_in(header: Header, receipts: Receipts, log_filter: LogFilter) -> list[Log]:
    """The wanted logs of a block as its receipts have them, in order. Index, transaction, block and
    time of each log are computed from its place in the receipts; what the node states is ignored.
    """
    logs: list[Log] = []
    is_wanted = log_filter.predicate()
    index = count()
    for place, receipt in enumerate(receipts):
        logs += [
            replace(
                log,
                block_hash=header.hash,
                block_number=header.number,
                transaction_hash=receipt.transaction_hash,
                transaction_index=hex(place),
                log_index=hex(at),
                removed=False,
                block_timestamp=header.timestamp,
            )
            for log, at in zip(receipt.logs, index, strict=False)
            if is_wanted(log)
        ]
    return logs


def have_root(header: Header, receipts: Receipts) -> bool:
    """Whether these are the receipts that the header states the root of."""
    root = header.receipts_root
    return isinstance(root, str) and root_of(receipts) == root.lower()


def have_bloom(header: Header, receipts: Receipts) -> bool:
    """Whether these receipts' logs make up the header's filter exactly."""
    try:
        return bloom_of(log for receipt in receipts for log in receipt.logs) == int(
            header.logs_bloom or "0x", 16
        )
    except ValueError:
        return False


def root_of(receipts: Receipts) -> str | None:
    """The root of the trie of these receipts; None if one of them is malformed."""
    try:
        leaves = [(_nibbles(_key(at)), _encoded(receipt)) for at, receipt in enumerate(receipts)]
    except ValueError:
        return None
    return "0x" + keccak(rlp.encode(_node(sorted(leaves), 0))).hex()


def _encoded(receipt: LoggedReceipt) -> bytes:
    logs: list[rlp.Value] = [
        [bytes_of(log.address), [bytes_of(topic) for topic in log.topics], bytes_of(log.data)]
        for log in receipt.logs
    ]
    outcome = bytes_of(receipt.root) if receipt.status is None else _number(receipt.status)
    bloom = bloom_of(receipt.logs).to_bytes(_BLOOM_BYTES, "big")
    fields: list[rlp.Value] = [outcome, _number(receipt.cumulative_gas_used), bloom, logs]
    kind = int(receipt.type or "0x0", 16)
    if receipt.deposit_nonce is not None and receipt.deposit_receipt_version is not None:
        # Deposits of Optimism since its Canyon fork; before, the root left the nonce out.
        fields += [_number(receipt.deposit_nonce), _number(receipt.deposit_receipt_version)]
    return (bytes([kind]) if kind else b"") + rlp.encode(fields)


def _key(place: int) -> bytes:
    return rlp.encode(_minimal(place))


def _number(text: str) -> bytes:
    return _minimal(int(text, 16))


def _minimal(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


# -- The trie -------------------------------------------------------------------------------------

_Leaf = tuple[tuple[int, ...], bytes]
"""The rest of the path, in nibbles, and the value."""


def _nibbles(key: bytes) -> tuple[int, ...]:
    return tuple(nibble for byte in key for nibble in (byte >> 4, byte & 15))


def _node(leaves: Sequence[_Leaf], depth: int) -> Any:
    """The node of these leaves, in the order of their paths, which are the same up to ``depth``."""
    if not leaves:
        return b""
    first, last = leaves[0][0], leaves[-1][0]
    if len(leaves) == 1:
        return [_path(first[depth:], is_leaf=True), leaves[0][1]]
    common = depth
    while common < min(len(first), len(last)) and first[common] == last[common]:
        common += 1
    if common > depth:
        return [_path(first[depth:common], is_leaf=False), _reference(leaves, common)]
    children: list[Any] = [b""] * 17
    for nibble in range(16):
        below = [leaf for leaf in leaves if len(leaf[0]) > depth and leaf[0][depth] == nibble]
        if below:
            children[nibble] = _reference(below, depth + 1)
    if len(first) == depth:
        children[16] = leaves[0][1]
    return children


def _reference(leaves: Sequence[_Leaf], depth: int) -> Any:
    node = _node(leaves, depth)
    encoded = rlp.encode(node)
    return node if len(encoded) < _SHORT else keccak(encoded)


def _path(nibbles: Sequence[int], *, is_leaf: bool) -> bytes:
    """Nibbles as bytes, with a flag for leaves and one for an odd number of them."""
    odd = len(nibbles) % 2
    prefixed = [2 * is_leaf + odd, *([] if odd else [0]), *nibbles]
    return bytes(16 * high + low for high, low in zip(prefixed[::2], prefixed[1::2], strict=True))
