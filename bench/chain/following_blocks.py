"""What new blocks cost: pending transactions looked for in them, blocks caught up with,
reorganisations repaired."""

from __future__ import annotations

import contextlib
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.chain.stage import Cost, Job, empty, listen, measured, register

PENDING = 10_000
_WEB3_CHECKS = 300
_HEADS = 200


def pending(job: Job) -> dict[str, Any]:
    """A block beside 10,000 pending transactions of which it holds a few; then all of them due."""
    from django.db import transaction

    from chain import monitor, rpc
    from chain.models import Transaction

    empty()
    register(job)
    in_block = _in_block(job)
    _make_pending(job, in_block)
    header = rpc.attempt(job.chain_id, lambda node: node.header(job.last))
    figures: dict[str, Any] = {"in_block": len(in_block)}

    def look(node: Any) -> None:
        seen = monitor.receipts_for(job.chain_id, [header], node)
        with transaction.atomic():
            monitor.record(seen)

    times = []
    for _ in range(5):
        Transaction.objects.filter(hash__in=in_block).update(
            status="pending", block_hash=None, block_number=None, finality=None
        )
        with measured(job) as cost:
            rpc.attempt(job.chain_id, look)
        times.append(cost.seconds * 1000)
        figures["block_requests"] = cost.requests
    figures["block_ms"] = statistics.median(times)
    assert Transaction.objects.filter(status="confirmed").count() == len(in_block)
    _all_due()
    with measured(job) as cost:
        while Transaction.objects.filter(next_check_at__lte=_now()).exists():
            monitor.check_due(job.chain_id)
    figures["due_seconds"], figures["due_requests"] = cost.seconds, cost.requests
    figures["web3_seconds"] = _with_web3(job)
    return figures


def catching_up(job: Job) -> dict[str, Any]:
    """Requests to catch up with a chain from its final blocks on, and after reorganisations."""
    from chain.indexing import head
    from chain.models import Cursor
    from tests.evm.node import Node

    empty()
    node = Node(int(job.url.rpartition(":")[2]), job.chain_id, ())
    node.automine(False)
    try:
        register(job)
        listen(job)
        head.follow(job.chain_id)
        figures = {}
        for blocks in (1, 64, 512):
            node.mine(blocks)
            figures[f"catch_up_{blocks}"] = _step(job, head.follow)
        for depth in (1, 8, 64):
            node.reorg(depth)
            figures[f"reorganisation_{depth}"] = _step(job, head.follow)
        assert Cursor.objects.get().number == node.head
        return figures
    finally:
        node.automine(True)


def _step(job: Job, follow: Callable[[int], object]) -> dict[str, Any]:
    with measured(job) as cost:
        follow(job.chain_id)
    return {"requests": cost.requests, "ms": cost.seconds * 1000}


def _in_block(job: Job) -> list[str]:
    from chain import rpc

    header = rpc.attempt(job.chain_id, lambda node: node.header(job.last))
    assert header is not None
    return list(header.transactions or ())


def _make_pending(job: Job, hashes: Sequence[str]) -> None:
    from django.db import connection

    others = ["0x" + secrets.token_hex(32) for _ in range(PENDING - len(hashes))]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO chain_transaction (object_id, created_at, updated_at, data, hash,"
            " network_id, status, attempts, next_check_at)"
            " SELECT substr(md5(hash), 1, 10), now(), now(), '{}', hash, %s, 'pending', 1,"
            " now() + interval '1 hour' FROM unnest(%s::text[]) AS hash",
            (str(job.chain_id), [*hashes, *others]),
        )
        cursor.execute("ANALYZE chain_transaction")


def _all_due() -> None:
    from chain.models import Transaction

    Transaction.objects.filter(status="pending").update(next_check_at=_now())


def _now() -> Any:
    from django.utils import timezone

    return timezone.now()


def _with_web3(job: Job) -> float:
    """Seconds for 10,000 checks one by one, from some of them."""
    from chain.rpc.web3_library import web3

    library = web3()
    client = library.Web3(library.HTTPProvider(job.url))
    began = time.perf_counter()
    for _ in range(_WEB3_CHECKS):
        with contextlib.suppress(library.exceptions.TransactionNotFound):
            client.eth.get_transaction_receipt("0x" + secrets.token_hex(32))
    return (time.perf_counter() - began) / _WEB3_CHECKS * PENDING


def prepare(job: Job) -> dict[str, Any]:
    """Make the network and the contract for processes that follow them."""
    empty()
    register(job)
    listen(job)
    return {}


def heads(job: Job) -> dict[str, Any]:
    """Blocks read one by one at the head: of two transactions with five events each, or none."""
    from chain.indexing import head
    from chain.indexing.verification import forget
    from tests.evm.artefacts import Contract
    from tests.evm.node import Node

    empty()
    node = Node(int(job.url.rpartition(":")[2]), job.chain_id, ())
    gem = Contract(node, job.address, job.abi)
    node.automine(False)
    try:
        register(job)
        forget()
        listen(job)
        head.follow(job.chain_id)
        figures = {}
        for name, sent in (("with_events", 2), ("empty", 0)):
            cost = Cost()
            for _ in range(_HEADS):
                for _ in range(sent):
                    gem.transact("spam", 5, gas=5_000_000)
                node.mine()
                with measured(job, cost):
                    head.follow(job.chain_id)
            figures[name] = {
                "requests": cost.requests / _HEADS,
                "ms": cost.seconds / _HEADS * 1000,
                "cpu_ms": cost.own_cpu / _HEADS * 1000,
            }
        return figures
    finally:
        node.automine(True)


WAYS: Sequence[Callable[[Job], dict[str, Any]]] = (pending, catching_up, heads, prepare)
