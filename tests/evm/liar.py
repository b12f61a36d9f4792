"""A node that lies: a proxy (``tests.evm.proxy``) that falsifies blocks, logs and the chain id.

    with lying(node, seed=7) as liar:
        liar.lie(Lie("drop", rate=0.1, first=100, last=200), Lie("change", rate=0.05))
        ...                       # the provider's address is liar.proxy.url
        liar.be_honest()
        assert liar.lies_about("drop") == {block_hash, ...}

A lie is consistent by default: it is drawn from the seed and the block, log or query, so the same
request gets the same false response each time, with any filter. With ``is_consistent=False``
each request is drawn separately, as behind a load balancer of which one machine is broken. Lies
about logs are repeated in receipts (``in_receipts``) and in the bloom filters of headers and
receipts (``in_bloom``) on request. What stays true is the receipts root, the block hash as the hash
of its header, and what is sent over WebSockets. Failures of transport, limits and refusals are in
``tests.evm.faults`` and combine with this on the same proxy.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any, Literal, get_args

import msgspec

from backend.kernel.json_types import JsonObject
from chain.core.blocks.bloom import bits_of
from chain.core.blocks.hashes import hash_of
from chain.core.node import Header
from tests.evm.node import Node
from tests.evm.proxy import Call, Proxy, proxied

Kind = Literal[
    "drop",  # a log is missing from eth_getLogs
    "invent",  # a block has one more log: the copy of another one, with other data
    "change",  # the data of a log is another, or its last topic if it has no data
    "retopic",  # the last topic of a log is another, if it has more than the signature
    "reorder",  # the logs of a block have each other's index: the last one has the first
    "shuffle",  # the list of logs is out of order; each log is true
    "delay",  # the logs of a block are missing until ``seconds`` after the first query for it
    "truncate",  # only the first ``most`` logs of a query over several blocks, without an error
    "no bloom",  # the bloom filter of a header is empty, as on networks that have none
    "wrong hash",  # a block has another hash, also in its logs and as the parent of the next
    "forge",  # all blocks from ``first`` on are another chain, with hashes that fit their headers
    "other chain",  # eth_chainId and net_version are ``chain_id``
]
KINDS: tuple[Kind, ...] = get_args(Kind)
_OF_LOGS: tuple[Kind, ...] = ("drop", "change", "retopic")
_OF_BLOCKS: tuple[Kind, ...] = ("delay", "reorder", "invent")

_FORGED: JsonObject = {"extraData": "0xf0"}
Place = Literal["logs", "receipts", "bloom"]


@dataclass(frozen=True)
class Lie:
    """What is falsified, how often and where.

    ``rate`` is the share of logs (``drop``, ``change``, ``retopic``), blocks (``invent``,
    ``reorder``, ``delay``, ``no bloom``, ``wrong hash``) or requests (``shuffle``, ``truncate``,
    ``other chain``) that are affected, ``first`` to ``last`` the blocks; for ``shuffle`` and
    ``truncate`` the block of the first log, for ``other chain`` the head. ``in_receipts`` repeats
    false logs in the receipts of their block, and ``in_bloom`` in its bloom filter; both are for
    the kinds up to ``delay`` except ``shuffle``.
    """

    kind: Kind
    rate: float = 1.0
    first: int = 0
    last: int | None = None
    is_consistent: bool = True
    in_receipts: bool = False
    in_bloom: bool = False
    seconds: float = 1.0
    most: int = 1
    chain_id: int = 1

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind
        repeats = self.in_receipts or self.in_bloom
        assert not repeats or self.kind in _OF_LOGS + _OF_BLOCKS, self.kind

    def concerns(self, height: int) -> bool:
        return self.first <= height and (self.last is None or height <= self.last)

    def forges(self, height: int) -> bool:
        return self.kind == "forge" and self.rate > 0 and self.concerns(height)

    def is_in(self, place: Place) -> bool:
        return place == "logs" or (self.in_receipts if place == "receipts" else self.in_bloom)


class Liar:
    """What a proxy falsifies. Lies are switched while it runs, by any thread."""

    def __init__(self, proxy: Proxy, seed: int = 0) -> None:
        self.proxy = proxy
        self.seed = seed
        self._random = Random(seed)
        self._lock = threading.Lock()
        self._lies: tuple[Lie, ...] = ()
        self._told: defaultdict[str, set[str]] = defaultdict(set)
        self._true_hashes: dict[str, str] = {}
        self._forgeries: dict[tuple[str, int], str] = {}
        self._invented: dict[str, JsonObject] = {}
        self._sizes: dict[str, int] = {}
        self._template: JsonObject | None = None
        self._first_asked: dict[str, float] = {}
        proxy.on("eth_getLogs", self._logs)
        proxy.on("eth_getBlockByNumber", self._block)
        proxy.on("eth_getBlockByHash", self._block)
        proxy.on("eth_getBlockReceipts", self._receipts)
        proxy.on("eth_getTransactionReceipt", self._receipt)
        proxy.on("eth_chainId", self._chain_id)
        proxy.on("net_version", self._chain_id)

    def lie(self, *lies: Lie) -> None:
        """Lie in these ways from now on, and in no other."""
        self._lies = lies

    @property
    def lies(self) -> tuple[Lie, ...]:
        """The lies in force now."""
        return self._lies

    def be_honest(self) -> None:
        self._lies = ()

    def lies_about(self, *kinds: Kind) -> set[str]:
        """The true hashes of the blocks, or the methods, for which a false response was sent; of
        all kinds by default."""
        with self._lock:
            return set().union(*(self._told[kind] for kind in kinds or KINDS))

    # -- Decisions -----------------------------------------------------------------------------

    def _lies_of(
        self, kind: Kind, height: int, *key: object, place: Place = "logs"
    ) -> Iterator[Lie]:
        """The lies of this kind in force now about what ``key`` stands for."""
        for lie in self._lies:
            is_meant = lie.kind == kind and lie.is_in(place) and lie.concerns(height)
            if is_meant and self._share(lie, key) < lie.rate:
                yield lie

    def _share(self, lie: Lie, key: tuple[object, ...]) -> float:
        if lie.is_consistent:
            return int(self._digest(lie.kind, *key)[:12], 16) / 16**12
        with self._lock:
            return self._random.random()

    def _digest(self, *key: object) -> str:
        return sha256(repr((self.seed, *key)).encode()).hexdigest()

    def _note(self, kind: Kind, subject: str) -> None:
        with self._lock:
            self._told[kind].add(subject)

    # -- Hashes of blocks ----------------------------------------------------------------------

    def _false_hash(self, block_hash: str, height: int) -> str:
        """The hash under which a block is known to clients."""
        for lie in self._lies:
            if lie.forges(height):
                self._note("forge", block_hash)
                return self._forged(block_hash, lie.first)
        for lie in self._lies_of("wrong hash", height, block_hash):
            false = self._digest("hash", block_hash)
            if not lie.is_consistent:
                false = self._digest("hash", block_hash, self._share(lie, ()))
            with self._lock:
                self._true_hashes[f"0x{false}"] = block_hash
            self._note("wrong hash", block_hash)
            return f"0x{false}"
        return block_hash

    def _forged(self, block_hash: str, first: int) -> str:
        """The hash of a block in a chain whose blocks have other extra data from ``first`` on."""
        below: list[JsonObject] = []
        results = block_hash
        while (results, first) not in self._forgeries:
            block = self.proxy.ask("eth_getBlockByHash", [results, False])
            if int(block["number"], 16) < first:
                self._forgeries[results, first] = results
                break
            below.append(block)
            results = block["parentHash"]
            if int(block["number"], 16) == 0:
                self._forgeries[results, first] = results
        for block in reversed(below):
            parent = self._forgeries[block["parentHash"], first]
            header = msgspec.convert({**block, **_FORGED, "parentHash": parent}, Header)
            false = str(hash_of(header))
            self._forgeries[block["hash"], first] = false
            self._true_hashes[false] = block["hash"]
        return self._forgeries[block_hash, first]

    def _true_hash(self, block_hash: str) -> str:
        """The node's hash of a block that a client names, also if it is false."""
        if not any(lie.kind in ("wrong hash", "forge") for lie in self._lies):
            return block_hash
        return self._true_hashes.get(block_hash, block_hash)

    def _block(self, call: Call) -> Any:
        which, *more = call.params
        if call.method == "eth_getBlockByHash":
            which = self._true_hash(which)
        block = call.forward(which, *more)
        if block is None or block.get("hash") is None:
            return block
        height = int(block["number"], 16)
        parent = block["parentHash"]
        if height > 0:
            parent = self._false_hash(parent, height - 1)
        forged = any(lie.forges(height) for lie in self._lies)
        return {
            **block,
            **(_FORGED if forged else {}),
            "hash": self._false_hash(block["hash"], height),
            "parentHash": parent,
            "logsBloom": self._false_bloom(call, block),
        }

    def _false_bloom(self, call: Call, block: JsonObject) -> str:
        height, block_hash, bloom = int(block["number"], 16), block["hash"], block["logsBloom"]
        if any(self._lies_of("no bloom", height, block_hash)):
            self._note("no bloom", block_hash)
            return hex_bloom([])
        if not any(lie.in_bloom and lie.concerns(height) for lie in self._lies):
            return str(bloom)
        return hex_bloom(self._false_logs_of(call, height, block_hash, "bloom"))

    # -- Logs ----------------------------------------------------------------------------------

    def _logs(self, call: Call) -> Any:
        query = dict(call.params[0])
        if "blockHash" in query:
            query["blockHash"] = self._true_hash(query["blockHash"])
        logs = call.forward(query)
        if logs and self._template is None:
            self._template = logs[0]
        if not self._lies:
            return logs
        logs = self._false_logs(call, logs, "logs")
        logs += self._invented_for(call, query)
        logs.sort(key=lambda log: (_height(log), int(log["logIndex"], 16)))
        logs = self._page(query, logs)
        return [
            {**log, "blockHash": self._false_hash(log["blockHash"], _height(log))} for log in logs
        ]

    def _false_logs_of(
        self, call: Call, height: int, block_hash: str, place: Place
    ) -> list[JsonObject]:
        """All logs of a block as a place reports them."""
        logs = call.ask("eth_getLogs", [{"blockHash": block_hash}])
        invented = self._invented_in(call, height, block_hash, place)
        return self._false_logs(call, logs, place) + invented

    def _false_logs(self, call: Call, logs: Sequence[JsonObject], place: Place) -> list[JsonObject]:
        """Logs of the node as a place reports them, without invented ones."""
        false_logs = (self._false_log(call, log, place) for log in logs)
        return [log for log in false_logs if log is not None]

    def _false_log(self, call: Call, log: JsonObject, place: Place) -> JsonObject | None:
        """A log as it is reported, or None for one that is missing."""
        height, block_hash, index = _height(log), log["blockHash"], log["logIndex"]
        if self._is_late(height, block_hash, place):
            return None
        for kind in _OF_LOGS:
            for _ in self._lies_of(kind, height, block_hash, index, place=place):
                false = None if kind == "drop" else self._changed(kind, log)
                if false != log:
                    self._note(kind, block_hash)
                if false is None:
                    return None
                log = false
        if any(self._lies_of("reorder", height, block_hash, place=place)):
            mirrored = hex(self._size(call, block_hash) - 1 - int(index, 16))
            if mirrored != index:
                self._note("reorder", block_hash)
            log = {**log, "logIndex": mirrored}
        return log

    def _size(self, call: Call, block_hash: str) -> int:
        """How many logs a block has."""
        if block_hash not in self._sizes:
            self._sizes[block_hash] = len(call.ask("eth_getLogs", [{"blockHash": block_hash}]))
        return self._sizes[block_hash]

    def _changed(self, kind: Kind, log: JsonObject) -> JsonObject:
        false = self._digest(kind, log["blockHash"], log["logIndex"])
        size = len(log["data"]) - 2
        if kind == "change" and size:
            # The last bytes: as a rule those of a number, which stays a small one.
            width = min(size, 4)
            return {**log, "data": log["data"][:-width] + _other(log["data"][-width:], false)}
        if len(log["topics"]) < 2:
            return log
        last = log["topics"][-1]
        return {**log, "topics": [*log["topics"][:-1], last[:-4] + _other(last[-4:], false)]}

    def _is_late(self, height: int, block_hash: str, place: Place) -> bool:
        for lie in self._lies_of("delay", height, block_hash, place=place):
            with self._lock:
                since = self._first_asked.setdefault(block_hash, time.monotonic())
            if time.monotonic() - since < lie.seconds:
                self._note("delay", block_hash)
                return True
        return False

    def _invented_for(self, call: Call, query: JsonObject) -> list[JsonObject]:
        """The logs that blocks of a query never had."""
        if self._template is None or not any(lie.kind == "invent" for lie in self._lies):
            return []
        if not _matches(query, self._template):
            return []
        return [
            log
            for height, block_hash in self._blocks_of(call, query)
            for log in self._invented_in(call, height, block_hash, "logs")
        ]

    def _blocks_of(self, call: Call, query: JsonObject) -> Iterator[tuple[int, str]]:
        if "blockHash" in query:
            block = call.ask("eth_getBlockByHash", [query["blockHash"], False])
            yield int(block["number"], 16), block["hash"]
            return
        expected = [lie for lie in self._lies if lie.kind == "invent"]
        for height in range(*_range(call, query)):
            if any(lie.concerns(height) for lie in expected):
                block = call.ask("eth_getBlockByNumber", [hex(height), False])
                yield height, block["hash"]

    def _invented_in(
        self, call: Call, height: int, block_hash: str, place: Place
    ) -> list[JsonObject]:
        """The log that a block never had, if one is reported: of its last transaction, or of
        none."""
        if self._template is None:
            return []
        if not any(self._lies_of("invent", height, block_hash, place=place)):
            return []
        self._note("invent", block_hash)
        if block_hash not in self._invented:
            block = call.ask("eth_getBlockByHash", [block_hash, False])
            transactions = block["transactions"] or [f"0x{self._digest('invent', block_hash)}"]
            log = {
                **self._template,
                "blockNumber": hex(height),
                "blockHash": block_hash,
                "transactionHash": transactions[-1],
                "transactionIndex": hex(len(transactions) - 1),
                "logIndex": hex(self._size(call, block_hash)),
            }
            log.pop("blockTimestamp", None)
            self._invented.setdefault(block_hash, self._changed("change", log))
        return [self._invented[block_hash]]

    def _page(self, query: JsonObject, logs: list[JsonObject]) -> list[JsonObject]:
        """The logs as one answer has them: cut, or out of order."""
        if not logs:
            return logs
        first, last = _height(logs[0]), _height(logs[-1])
        key = sorted((name, str(value)) for name, value in query.items())
        for lie in self._lies_of("truncate", first, key):
            if first < last and len(logs) > lie.most:
                for log in logs[lie.most :]:
                    self._note("truncate", log["blockHash"])
                logs = logs[: lie.most]
        for lie in self._lies_of("shuffle", first, key):
            order = Random(
                self._digest("shuffle", key if lie.is_consistent else self._share(lie, ()))
            )
            logs = order.sample(logs, len(logs))
            self._note("shuffle", "eth_getLogs")
        return logs

    # -- Receipts and the chain ----------------------------------------------------------------

    def _receipts(self, call: Call) -> Any:
        which = call.params[0]
        if isinstance(which, str):
            which = self._true_hash(which)
        receipts = call.forward(which)
        if receipts is None or not self._lies:
            return receipts
        false = [self._false_receipt(call, receipt) for receipt in receipts]
        return false or self._invented_receipts(call, which)

    def _receipt(self, call: Call) -> Any:
        receipt = call.forward()
        if receipt is None or not self._lies:
            return receipt
        return self._false_receipt(call, receipt)

    def _false_receipt(self, call: Call, receipt: JsonObject) -> JsonObject:
        height, block_hash = _height(receipt), receipt["blockHash"]
        logs = self._false_logs(call, receipt["logs"], "receipts")
        for log in self._invented_in(call, height, block_hash, "receipts"):
            if log["transactionHash"] == receipt["transactionHash"]:
                logs.append(log)
        return self._sealed(receipt, logs)

    def _invented_receipts(self, call: Call, which: str) -> list[JsonObject]:
        """The receipts of a block without transactions: that of its invented log, if it has one."""
        method = "eth_getBlockByHash" if len(which) == 66 else "eth_getBlockByNumber"
        block = call.ask(method, [which, False])
        logs = self._invented_in(call, int(block["number"], 16), block["hash"], "receipts")
        if not logs:
            return []
        assert self._template is not None
        model = call.ask("eth_getTransactionReceipt", [self._template["transactionHash"]])
        copied = ("transactionHash", "transactionIndex", "blockNumber", "blockHash")
        return [self._sealed({**model, **{name: logs[0][name] for name in copied}}, logs)]

    def _sealed(self, receipt: JsonObject, logs: list[JsonObject]) -> JsonObject:
        """A receipt with these logs and the hash of its block."""
        height, true_hash = _height(receipt), receipt["blockHash"]
        block_hash = self._false_hash(true_hash, height)
        bloom = receipt["logsBloom"]
        if any(lie.in_bloom and lie.concerns(height) for lie in self._lies):
            bloom = hex_bloom(logs)
        logs = [{**log, "blockHash": block_hash} for log in logs]
        return {**receipt, "blockHash": block_hash, "logs": logs, "logsBloom": bloom}

    def _chain_id(self, call: Call) -> Any:
        if any(lie.kind == "other chain" for lie in self._lies):
            head = int(call.ask("eth_blockNumber", []), 16)
            for lie in self._lies_of("other chain", head, call.method):
                self._note("other chain", call.method)
                return hex(lie.chain_id) if call.method == "eth_chainId" else str(lie.chain_id)
        return call.forward()


@contextmanager
def lying(node: Node, *lies: Lie, seed: int = 0) -> Iterator[Liar]:
    """A provider in front of a node that lies in these ways from the beginning."""
    with proxied(node) as proxy:
        liar = Liar(proxy, seed)
        liar.lie(*lies)
        yield liar


def _height(results: JsonObject) -> int:
    return int(results["blockNumber"], 16)


def hex_bloom(logs: Sequence[JsonObject]) -> str:
    """The bloom filter of a block or receipt with these logs."""
    bloom = 0
    for log in logs:
        for subject in (log["address"], *log["topics"]):
            bloom |= bits_of(subject.lower())
    return f"0x{bloom:0512x}"


def _range(call: Call, query: JsonObject) -> tuple[int, int]:
    """The heights of a query, as ``range`` takes them; tags are those that all nodes have."""
    head = int(call.ask("eth_blockNumber", []), 16)
    bounds = [query.get("fromBlock", "latest"), query.get("toBlock", "latest")]
    first, last = (
        int(bound, 16) if bound.startswith("0x") else 0 if bound == "earliest" else head
        for bound in bounds
    )
    return first, min(last, head) + 1


def _matches(query: JsonObject, log: JsonObject) -> bool:
    """Whether a filter of ``eth_getLogs`` wants a log."""
    addresses = _several(query.get("address"))
    if addresses and log["address"].lower() not in {address.lower() for address in addresses}:
        return False
    expected: Sequence[Any] = query.get("topics") or ()
    topics: Sequence[str] = log["topics"]
    return len(expected) <= len(topics) and all(
        not address or topic in _several(address)
        for address, topic in zip(expected, topics, strict=False)
    )


def _several(value: Any) -> list[str]:
    return [] if not value else [value] if isinstance(value, str) else [*value]


def _other(digits: str, false: str) -> str:
    """Other hexadecimal digits than these, as many."""
    results = false[: len(digits)]
    return results if results != digits else f"{int(digits[0], 16) ^ 1:x}{digits[1:]}"
