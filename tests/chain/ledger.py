"""The chain as its node has it, block by block, for comparison with what is stored.

Nothing of the service's way to nodes takes part in this: blocks and receipts come straight from the
node, and blocks that a reorganisation takes away stay known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from chain.core.blocks.times import wire_time
from chain.core.node import Log
from chain.indexing import contracts
from chain.models import Backfill, ContractEvent, Coverage, Cursor, OutboxEntry, SmartContract
from tests.evm.node import Node

Event = tuple[int, str, int, str, int, str, str | None, str, str | None]
"""Height, block, index, transaction, its index, address, name, arguments as JSON, time."""

_AT_ONCE = 64


@dataclass
class Minted:
    """A block: its height, parent and time, and the logs of its receipts."""

    number: int
    parent: str
    time: int
    logs: list[Log]
    events: dict[int, list[Event]] = field(default_factory=dict)


class Ledger:
    """All blocks that a node has had since ``base``."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.base = node.head
        self.blocks: dict[str, Minted] = {}

    def note(self) -> None:
        """Add the blocks of the node that aren't known yet."""
        height = self.node.head
        while height > self.base:
            heights = range(height, max(self.base, height - _AT_ONCE), -1)
            blocks = self.node.batch(
                [("eth_getBlockByNumber", (hex(number), False)) for number in heights]
            )
            new = [block for block in blocks if block["hash"] not in self.blocks]
            self._add(new)
            if len(new) < len(blocks):
                return
            height -= len(blocks)

    def _add(self, blocks: list[dict[str, Any]]) -> None:
        busy = [block for block in blocks if block["transactions"]]
        receipts = (
            self.node.batch([("eth_getBlockReceipts", (block["number"],)) for block in busy])
            if busy
            else []
        )
        by_hash = {
            block["hash"]: [log for receipt in its for log in receipt["logs"]]
            for block, its in zip(busy, receipts, strict=True)
        }
        for block in blocks:
            self.blocks[block["hash"]] = Minted(
                int(block["number"], 16),
                block["parentHash"],
                int(block["timestamp"], 16),
                msgspec.convert(by_hash.get(block["hash"], []), list[Log]),
            )

    def chain(self, block_hash: str) -> Iterator[tuple[str, Minted]]:
        """This block and those below it, down to the first one that is known."""
        while block_hash in self.blocks:
            block = self.blocks[block_hash]
            yield block_hash, block
            block_hash = block.parent

    def events(self, block_hash: str) -> set[Event]:
        """The events of the registered contracts up to this block."""
        catalogue = contracts.catalogue(self.node.chain_id)
        results: set[Event] = set()
        for hash_, block in self.chain(block_hash):
            if not block.logs:
                continue
            if catalogue.version not in block.events:
                time = wire_time(block.time)
                block.events[catalogue.version] = [
                    (
                        *(row.block_number, row.block_hash, row.log_index, row.transaction_hash),
                        *(row.transaction_index, row.address, row.event_name),
                        *(_text(json.loads(row.args)), time),
                    )
                    for row in catalogue.read(block.logs, {hash_: time} if time else {})
                ]
            results.update(block.events[catalogue.version])
        return results


@dataclass(frozen=True)
class Comparison:
    """What is stored that isn't on the chain, and the reverse, of blocks that have been read."""

    wrong: set[Event]
    missing: set[Event]

    def __len__(self) -> int:
        return len(self.wrong) + len(self.missing)


def compare(ledger: Ledger) -> Comparison:
    """Compare what clients are shown with the chain up to the cursor."""
    network_id = ledger.node.chain_id
    cursor = Cursor.objects.get(pk=network_id)
    if cursor.number is None or cursor.hash is None:
        return Comparison(set(), set())
    assert cursor.number <= ledger.base or cursor.hash in ledger.blocks, "a block that never was"
    stored = shown(network_id)
    true = ledger.events(cursor.hash)
    unread = _unread(network_id, cursor)
    missing = {
        event
        for event in true - stored
        if not any(event[0] in span for span in unread.get(event[5], ()))
    }
    return Comparison(stored - true, missing)


def _unread(network_id: int, cursor: Cursor) -> dict[str, list[range]]:
    """Blocks that are still to be read, by contract."""
    unread: dict[str, list[range]] = {}
    for row in Backfill.objects.filter(network_id=network_id, done_at=None):
        unread.setdefault(row.address, []).append(range(row.next_block, row.last_block + 1))
    if cursor.planned != cursor.contracts:
        planned = {*Coverage.objects.values_list("address", flat=True)}
        listening = SmartContract.objects.filter(network_id=network_id, listening=True)
        for address in {*listening.values_list("address", flat=True)} - planned:
            unread[str(address)] = [range(10**12)]
    return unread


def shown(network_id: int) -> set[Event]:
    """All events of a network that clients are shown."""
    rows = ContractEvent.objects.filter(canonical=True, network_id=str(network_id))
    names = ("block_number", "block_hash", "log_index", "transaction_hash", "transaction_index")
    return {
        (*row[:7], _text(row[7]), _moment(row[8]))
        for row in rows.values_list(*names, "address", "event_name", "args", "block_timestamp")
    }


def replayed(network_id: int) -> set[Event]:
    """What a subscriber knows who has applied the whole outbox, each row in its turn."""
    rows = OutboxEntry.objects.filter(network_id=network_id).order_by("seq")
    existing: dict[tuple[str, int], Event] = {}
    numbers = []
    for seq, op, payload in rows.values_list("seq", "op", "payload"):
        numbers.append(seq)
        event = json.loads(payload)
        place = (event["blockHash"], event["logIndex"])
        if op == "added":
            assert place not in existing, "sent twice"
            existing[place] = (
                *(event["blockNumber"], event["blockHash"], event["logIndex"]),
                *(event["transactionHash"], event["transactionIndex"], event["address"]),
                *(event.get("eventName"), _text(event["args"])),
                event.get("blockTimestamp", {}).get("iso"),
            )
        else:
            existing.pop(place, None)  # of a backfill, maybe, whose events aren't sent
    assert numbers == [*range(1, len(numbers) + 1)]
    return {*existing.values()}


def followed(network_id: int, events: set[Event]) -> set[Event]:
    """Those of these events that subscribers are sent: of blocks that were read as they came."""
    rows = Coverage.objects.filter(network_id=network_id, followed_from__isnull=False)
    since = dict(rows.values_list("address", "followed_from"))
    return {event for event in events if event[0] > since.get(event[5], event[0])}


def _text(args: Any) -> str:
    return json.dumps(args, sort_keys=True)


def _moment(value: Any) -> str | None:
    if value is None:
        return None
    return str(value.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
