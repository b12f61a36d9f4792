"""Beginning to follow a transaction."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from django.db import transaction

from backend.kernel.connections.advisory_locks import unique_value
from backend.logs.setup import get_logger
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from backend.tasks.registered import task
from chain.core.names import hash_of, network_of
from chain.core.transactions.sightings import Sighting
from chain.monitor.claims import move
from objects.core.names import new_object_id
from objects.database import locks, maintenance
from objects.database.statements import fetch, fetch_rows

_SECONDS: Final = 5.0
_NOTHING: Final = Sighting()

log = get_logger("transactions")


class _Started(NamedTuple):
    object_id: str
    is_new: bool


def start(network_id: int | str, tx_hash: str, sighting: Sighting = _NOTHING) -> str:
    """Follow a transaction of this network from now on; the id of its record, old or new. One that
    a client has begun on another network, where no node knows it, becomes this network's then.
    ``known`` is what its sender knows of it.

    As part of the caller's transaction, if there is one; its first check comes right after. Raises
    ``ValueError`` for what is no network or no hash, ``UnderMaintenance`` while the chain has to
    wait.
    """
    network, known_hash = network_of(network_id), hash_of(tx_hash)
    with maintenance.recording(), maintenance.writing():
        lock(known_hash)
        [row] = fetch_rows(
            _Started,
            "WITH new AS (INSERT INTO chain_transaction (object_id, created_at, updated_at, data,"
            " hash, network_id, status, attempts, next_check_at, failed_checks, missing_checks,"
            ' nonce, from_address, "to")'
            " SELECT %(id)s, now.ms, now.ms, '{}', %(hash)s, %(network)s, 'pending', 0, now.ms,"
            " 0, 0,"
            " %(nonce)s::numeric, %(from)s, %(to)s"
            " FROM (SELECT date_trunc('milliseconds', statement_timestamp()) AS ms) now"
            " ON CONFLICT (hash) DO NOTHING RETURNING object_id)"
            " SELECT object_id, true FROM new UNION ALL"
            " SELECT object_id, false FROM chain_transaction WHERE hash = %(hash)s LIMIT 1",
            {
                "id": new_object_id(),
                "hash": known_hash,
                "network": str(network),
                "nonce": sighting.nonce,
                "from": sighting.from_address,
                "to": sighting.to,
            },
            prepare=True,
        )
        if row.is_new:
            _check_after_commit(network)
        else:
            move(network, known_hash)
    return row.object_id


def started(object_id: str, network_id: int) -> None:
    """Follow a record that has just been stored, in the transaction that has stored it."""
    with transaction.atomic():
        fetch(
            "UPDATE chain_transaction SET next_check_at = created_at WHERE object_id = %(id)s",
            {"id": object_id},
            prepare=True,
        )
        _check_after_commit(network_id)


def lock(tx_hash: str) -> None:
    """Make others that start the same hash wait until this transaction ends."""
    locks.lock_transaction(unique_value("Transaction", "hash", tx_hash))


def _check_after_commit(network_id: int) -> None:
    transaction.on_commit(partial(_check_soon, network_id), robust=True)


def _check_soon(network_id: int) -> None:
    """Have a worker check now. Without a broker, or if the task is lost, the sweep does."""
    try:
        broker.send(task("chain.check_due"), network_id, expires=_SECONDS)
    except BrokerAway as error:
        log.warning("no broker; a transaction is checked later", exc_info=error)
