"""A node that lies: a proxy (``tests.evm.proxy``) that falsifies blocks, logs and the chain id.

    with lying(node, seed=7) as liar:
        liar.lie(Lie("drop", rate=0.1, first=100, last=200), Lie("change", rate=0.05))
        ...                       # the provider's address is liar.proxy.url
        liar.be_honest()
        assert liar.lies_about("drop") == {block_hash, ...}

A lie is consistent by default: it is drawn from the seed and the block, log or query, so the same
request gets the same false response each time. With ``is_consistent=False`` each request is drawn
separately, as behind a load balancer of which one machine is broken. Failures of transport, limits
and refusals are in ``tests.evm.faults`` and combine with this on the same proxy.
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

from tests.evm.node import Node
from tests.evm.proxy import Call, Proxy, proxied

Kind = Literal[
    "drop",  # a log is missing from eth_getLogs
    "invent",  # a block has one more log: the copy of another one, with other data
    "change",  # the data of a log is another, or its last topic if it has no data
    "retopic",  # the last topic of a log is another, if it has more than the signature
    "reorder",  # the logs of a block have each other's index
    "shuffle",  # the list of logs is out of order; each log is true
    "delay",  # the logs of a block are missing until ``seconds`` after the first query for it
    "truncate",  # only the first ``most`` logs of a query over several blocks, without an error
    "wrong hash",  # a block has another hash, also in its logs and as the parent of the next
    "other chain",  # eth_chainId and net_version are ``chain_id``
]
KINDS: tuple[Kind, ...] = get_args(Kind)
_IN_RECEIPTS: tuple[Kind, ...] = ("drop", "change", "retopic")

Json = dict[str, Any]


@dataclass(frozen=True)
class Lie:
    """What is falsified, how often and where.

    ``rate`` is the share of logs (``drop``, ``change``, ``retopic``), blocks (``invent``,
    ``reorder``, ``delay``, ``wrong hash``) or requests (``shuffle``, ``truncate``, ``other chain``)
    that are affected, ``first`` to ``last`` the blocks; for requests the first block asked for,
    for ``other chain`` the head. ``in_receipts`` repeats a false log in the receipts of its block,
    which only ``drop``, ``change`` and ``retopic`` can do.
    """

    kind: Kind
    rate: float = 1.0
    first: int = 0
    last: int | None = None
    is_consistent: bool = True
    in_receipts: bool = False
    seconds: float = 1.0
    most: int = 1
    chain_id: int = 1

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind
        assert not self.in_receipts or self.kind in _IN_RECEIPTS, self.kind

    def concerns(self, height: int) -> bool:
        return self.first <= height and (self.last is None or height <= self.last)


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
        self._invented: dict[str, Json] = {}
        self._template: Json | None = None
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

    def be_honest(self) -> None:
        self._lies = ()

    def lies_about(self, *kinds: Kind) -> set[str]:
        """The true hashes of the blocks, or the methods, for which a false response was sent; of
        all kinds by default."""
        with self._lock:
            return set().union(*(self._told[kind] for kind in kinds or KINDS))

    # -- Decisions -----------------------------------------------------------------------------

    def _lies_of(self, kind: Kind, height: int, *key: object) -> Iterator[Lie]:
        """The lies of this kind that are told now about what ``key`` stands for."""
        for lie in self._lies:
            if lie.kind == kind and lie.concerns(height) and self._share(lie, key) < lie.rate:
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
        for lie in self._lies_of("wrong hash", height, block_hash):
            false = self._digest("hash", block_hash)
            if not lie.is_consistent:
                false = self._digest("hash", block_hash, self._share(lie, ()))
            with self._lock:
                self._true_hashes[f"0x{false}"] = block_hash
            self._note("wrong hash", block_hash)
            return f"0x{false}"
        return block_hash

    def _true_hash(self, block_hash: str) -> str:
        """The node's hash of a block that a client names; a false one is known while it is told."""
        if not any(lie.kind == "wrong hash" for lie in self._lies):
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
        return {**block, "hash": self._false_hash(block["hash"], height), "parentHash": parent}

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
        logs = [false for log in logs if (false := self._false_log(log)) is not None]
        logs = self._reordered([log for log in logs if not self._is_late(log)])
        logs = self._with_invented(call, query, logs)
        logs = self._page(query, logs)
        return [
            {**log, "blockHash": self._false_hash(log["blockHash"], _height(log))} for log in logs
        ]

    def _false_log(self, log: Json, *, is_receipt: bool = False) -> Json | None:
        """A log as it is told, or None for one that is dropped."""
        place = log["blockHash"], log["logIndex"]
        for kind in _IN_RECEIPTS:
            for lie in self._lies_of(kind, _height(log), *place):
                if is_receipt and not lie.in_receipts:
                    continue
                false = None if kind == "drop" else self._changed(kind, log)
                if false != log:
                    self._note(kind, log["blockHash"])
                if false is None:
                    return None
                log = false
        return log

    def _changed(self, kind: Kind, log: Json) -> Json:
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

    def _is_late(self, log: Json) -> bool:
        block_hash = log["blockHash"]
        for lie in self._lies_of("delay", _height(log), block_hash):
            with self._lock:
                since = self._first_asked.setdefault(block_hash, time.monotonic())
            if time.monotonic() - since < lie.seconds:
                self._note("delay", block_hash)
                return True
        return False

    def _reordered(self, logs: list[Json]) -> list[Json]:
        by_block: dict[str, list[Json]] = {}
        for log in logs:
            by_block.setdefault(log["blockHash"], []).append(log)
        found = []
        for block_hash, its in by_block.items():
            if len(its) > 1 and any(self._lies_of("reorder", _height(its[0]), block_hash)):
                indexes = [log["logIndex"] for log in its]
                its = [
                    {**log, "logIndex": index}
                    for log, index in zip(its[::-1], indexes, strict=True)
                ]
                self._note("reorder", block_hash)
            found += its
        return found

    def _with_invented(self, call: Call, query: Json, logs: list[Json]) -> list[Json]:
        """The logs with those that blocks of the query never had."""
        if self._template is None or not any(lie.kind == "invent" for lie in self._lies):
            return logs
        if not _matches(query, self._template):
            return logs
        invented = []
        for height, block_hash in self._blocks_of(call, query):
            if any(self._lies_of("invent", height, block_hash)):
                invented.append(self._invented_in(call, height, block_hash))
                self._note("invent", block_hash)
        return sorted([*logs, *invented], key=lambda log: (_height(log), int(log["logIndex"], 16)))

    def _blocks_of(self, call: Call, query: Json) -> Iterator[tuple[int, str]]:
        if "blockHash" in query:
            block = call.ask("eth_getBlockByHash", [query["blockHash"], False])
            yield int(block["number"], 16), block["hash"]
            return
        wanted = [lie for lie in self._lies if lie.kind == "invent"]
        for height in range(*_range(call, query)):
            if any(lie.concerns(height) for lie in wanted):
                block = call.ask("eth_getBlockByNumber", [hex(height), False])
                yield height, block["hash"]

    def _invented_in(self, call: Call, height: int, block_hash: str) -> Json:
        if block_hash not in self._invented:
            assert self._template is not None
            size = len(call.ask("eth_getLogs", [{"blockHash": block_hash}]))
            false = self._digest("invent", block_hash)
            log = {
                **self._template,
                "blockNumber": hex(height),
                "blockHash": block_hash,
                "transactionHash": f"0x{false}",
                "transactionIndex": "0x0",
                "logIndex": hex(size),
            }
            log.pop("blockTimestamp", None)
            self._invented.setdefault(block_hash, self._changed("change", log))
        return self._invented[block_hash]

    def _page(self, query: Json, logs: list[Json]) -> list[Json]:
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
        return None if receipts is None else [self._false_receipt(one) for one in receipts]

    def _receipt(self, call: Call) -> Any:
        receipt = call.forward()
        return None if receipt is None else self._false_receipt(receipt)

    def _false_receipt(self, receipt: Json) -> Json:
        if not self._lies:
            return receipt
        block_hash = self._false_hash(receipt["blockHash"], _height(receipt))
        logs = [self._false_log(log, is_receipt=True) for log in receipt["logs"]]
        return {
            **receipt,
            "blockHash": block_hash,
            "logs": [{**log, "blockHash": block_hash} for log in logs if log is not None],
        }

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


def _height(found: Json) -> int:
    return int(found["blockNumber"], 16)


def _range(call: Call, query: Json) -> tuple[int, int]:
    """The heights of a query, as ``range`` takes them; tags are those that all nodes have."""
    head = int(call.ask("eth_blockNumber", []), 16)
    bounds = [query.get("fromBlock", "latest"), query.get("toBlock", "latest")]
    first, last = (
        int(one, 16) if one.startswith("0x") else 0 if one == "earliest" else head for one in bounds
    )
    return first, min(last, head) + 1


def _matches(query: Json, log: Json) -> bool:
    """Whether a filter of ``eth_getLogs`` wants a log."""
    addresses = _several(query.get("address"))
    if addresses and log["address"].lower() not in {one.lower() for one in addresses}:
        return False
    wanted: Sequence[Any] = query.get("topics") or ()
    topics: Sequence[str] = log["topics"]
    return len(wanted) <= len(topics) and all(
        not one or topic in _several(one) for one, topic in zip(wanted, topics, strict=False)
    )


def _several(value: Any) -> list[str]:
    return [] if not value else [value] if isinstance(value, str) else [*value]


def _other(digits: str, false: str) -> str:
    """Other hexadecimal digits than these, as many."""
    found = false[: len(digits)]
    return found if found != digits else f"{int(digits[0], 16) ^ 1:x}{digits[1:]}"
