"""Transactions that the monitor follows, as tests see them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any, cast

from chain import monitor, rpc
from chain.core.node import Header
from chain.core.node import Node as Asked
from chain.models import Blockchain, Transaction
from objects.core.names import new_object_id
from tests.evm.node import Node
from tests.rest import MASTER, Api

WEI = {"value": 1, "gas": 21_000}
UNKNOWN = "0x" + "ab" * 32


def network(network_id: int, url: str | None) -> None:
    """Let the service know a network."""
    body = {"networkId": network_id, "rpcEndpoint": url, "name": "Test"}
    Api(MASTER).make("Blockchain", **body)


def paid(node: Node, place: int = 0, **more: Any) -> str:
    """The hash of a transaction that an account of the node has just sent."""
    return node.send({"from": node.accounts[place], "to": node.accounts[9], **WEI, **more})


@dataclass
class Followed:
    """One that is followed. Times are seconds since its start."""

    object_id: str
    network_id: int
    start: int

    @property
    def row(self) -> Transaction:
        return Transaction.objects.get(object_id=self.object_id)

    @property
    def wire(self) -> dict[str, Any]:
        """The record as clients read it."""
        body: dict[str, Any] = Api(MASTER).get(f"/classes/Transaction/{self.object_id}").json
        return body

    def get(self, *names: str) -> tuple[Any, ...]:
        wire = self.wire
        return tuple(wire.get(name) for name in names)

    @property
    def status(self) -> str:
        return cast(str, self.wire["status"])

    @property
    def due(self) -> float | None:
        """When it is checked next."""
        due = self.row.next_check_at
        return None if due is None else due.timestamp() - self.start / 1000

    def check(self, at: float = 0) -> int:
        """Have everything checked that is due at this moment."""
        return monitor.check_due(self.network_id, now=self.start + round(at * 1000))

    def check_when_due(self, times: int = 1) -> None:
        """Let time pass until it has been checked so many times more."""
        for _ in range(times):
            due = self.row.next_check_at
            assert due is not None
            full = int(due.timestamp()) * 1000
            monitor.check_due(self.network_id, now=full + ceil(due.microsecond / 1000))


def follow(network_id: int, tx_hash: str) -> Followed:
    """Begin to follow a transaction."""
    object_id = monitor.start(network_id, tx_hash)
    created_at = Transaction.objects.get(object_id=object_id).created_at
    return Followed(object_id, network_id, round(created_at.timestamp() * 1000))


def many(network_id: int, count: int) -> list[str]:
    """So many pending records of unknown hashes, due now; their hashes."""
    from django.db import connection

    hashes = [f"0x{n:064x}" for n in range(1, count + 1)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO chain_transaction (object_id, created_at, updated_at, data, hash,"
            " network_id, status, attempts, next_check_at, failed_checks, missing_checks)"
            " SELECT v.id, now.ms, now.ms, '{}', v.hash, %s, 'pending', 0, now.ms, 0, 0"
            " FROM unnest(%s::text[], %s::text[]) AS v(id, hash),"
            " (SELECT date_trunc('milliseconds', statement_timestamp()) AS ms) now",
            [str(network_id), [new_object_id() for _ in hashes], hashes],
        )
    return hashes


def read_block(network_id: int, *heights: int) -> int:
    """What the reader of a network does for transactions with blocks that are new to it; how many
    have changed."""

    def step(node: Asked) -> monitor.Seen:
        headers: list[Header] = [header for header in node.headers(heights) if header is not None]
        return monitor.receipts_for(network_id, headers, node)

    return monitor.record(rpc.attempt(network_id, step))


@contextmanager
def mining_by_hand(node: Node) -> Iterator[None]:
    node.automine(False)
    try:
        yield
    finally:
        # Else it would mine what waits during a reset, and hang.
        node.rpc("anvil_dropAllTransactions")
        node.automine(True)


def forget_network(network_id: int) -> None:
    Blockchain.objects.filter(network_id=network_id).delete()
