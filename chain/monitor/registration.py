"""Beginning to follow a transaction."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.db import transaction

from backend.kernel.connections.advisory_locks import unique_value
from backend.logs.setup import get_logger
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from backend.tasks.registered import task
from chain.core.names import hash_of, network_of
from chain.core.transactions.sightings import Sighting
from chain.monitor.storage import registration as rows
from objects.database import locks, maintenance

_SECONDS: Final = 5.0
_NOTHING: Final = Sighting()

log = get_logger("transactions")


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
        row = rows.insert(network, known_hash, sighting)
        if row.is_new:
            _check_after_commit(network)
        else:
            rows.move(network, known_hash)
    return row.object_id


def started(object_id: str, network_id: int) -> None:
    """Follow a record that has just been stored, in the transaction that has stored it."""
    with transaction.atomic():
        rows.check_from_creation(object_id)
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
