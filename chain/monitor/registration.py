"""Beginning to follow a transaction."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.db import transaction
from django.db.models import F

from backend.kernel.connections.advisory_locks import unique_value
from backend.logs.setup import get_logger
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from backend.tasks.registered import task
from chain.core.names import hash_of, network_of
from chain.core.transactions.sightings import Sighting
from chain.core.transactions.states import PENDING
from chain.models import Transaction
from chain.models.expressions import now_in_milliseconds
from chain.monitor.claims import move
from objects.core.names import new_object_id
from objects.database import locks, maintenance
from objects.database.orm import orm_queries

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
        now = now_in_milliseconds()
        new = Transaction(
            object_id=new_object_id(),
            created_at=now,
            updated_at=now,
            hash=known_hash,
            network_id=str(network),
            status=PENDING,
            attempts=0,
            next_check_at=now,
            nonce=sighting.nonce,
            from_address=sighting.from_address,
            to=sighting.to,
        )
        with orm_queries():
            Transaction.objects.bulk_create([new], ignore_conflicts=True)
            same_hash = Transaction.objects.filter(hash=known_hash)
            object_id = same_hash.values_list("object_id", flat=True).get()
        if object_id == new.object_id:
            _check_after_commit(network)
        else:
            move(network, known_hash)
    return object_id


def started(object_id: str, network_id: int) -> None:
    """Follow a record that has just been stored, in the transaction that has stored it."""
    with transaction.atomic():
        with orm_queries():
            Transaction.objects.filter(pk=object_id).update(next_check_at=F("created_at"))
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
