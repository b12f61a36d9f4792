"""Networks as operators add, change and remove them without the admin.

A network is an object of the class ``Blockchain``. All writes go through the object service, so the
rules of the class (``chain.records.rules``) and its triggers hold here as they do over REST.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from backend.kernel.errors import DuplicateValue, ObjectNotFound, OperationForbidden
from backend.kernel.principal import MASTER
from backend.kernel.texts.counted import counted
from backend.logs.setup import get_logger
from chain.core.transactions.states import PENDING
from chain.indexing.storage import retention
from chain.models import (
    Backfill,
    Block,
    Blockchain,
    ContractEvent,
    Coverage,
    Cursor,
    ProvedBlock,
    Provider,
    Recheck,
    Reorganisation,
    SmartContract,
    Transaction,
)
from chain.models.expressions import next_version
from chain.models.indexing import RESET_CURSOR
from objects import service
from objects.core.names import ObjectId, check_class_name
from objects.database import maintenance
from objects.database.orm import orm_queries
from objects.storage.records import wire_object

_CLASS: Final = check_class_name("Blockchain")

log = get_logger("chain")


@dataclass(frozen=True, slots=True)
class Change:
    """The value of a field before and after a change, as clients read it."""

    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a network beside its settings and providers."""

    block: int | None
    events: int
    backfills: int
    contracts: int
    transactions: int
    pending: int

    def __bool__(self) -> bool:
        counts = (self.events, self.backfills, self.contracts, self.transactions)
        return self.block is not None or any(counts)

    def __str__(self) -> str:
        parts = [
            counted(self.events, "event"),
            counted(self.backfills, "open backfill"),
            counted(self.contracts, "contract"),
            f"{counted(self.transactions, 'transaction')} ({self.pending:,} pending)",
        ]
        read = "nothing read" if self.block is None else f"read up to block {self.block:,}"
        return ", ".join([read, *parts])


class HasData(OperationForbidden):
    """The network isn't removed, since it has data and the caller didn't choose what becomes of
    it."""

    def __init__(self, network_id: int, stored: Stored) -> None:
        super().__init__(f"Network {network_id} has data: {stored}.")
        self.stored = stored


def add(network_id: int, fields: Mapping[str, Any]) -> None:
    """Add a network with these fields of the class ``Blockchain``.

    Raises ``DuplicateValue``, and what the class refuses.
    """
    if Blockchain.objects.filter(network_id=network_id).exists():
        raise DuplicateValue(f"Network {network_id} exists already.")
    service.create(MASTER, _CLASS, {**fields, "networkId": network_id})


def change(network_id: int, fields: Mapping[str, Any]) -> dict[str, Change]:
    """Change fields of a network, all or none; the fields that have another value than before.

    Raises ``ObjectNotFound``, and what the class refuses.
    """
    with maintenance.writing():
        row = _locked(network_id)
        if row is None:
            raise ObjectNotFound(f"There is no network {network_id}.")
        object_id = ObjectId(row.object_id)
        before = wire_object(service.get(MASTER, _CLASS, object_id))
        service.update(MASTER, _CLASS, object_id, dict(fields))
        after = wire_object(service.get(MASTER, _CLASS, object_id))
    changes = {name: Change(before.get(name), after.get(name)) for name in fields}
    return {
        name: field_change
        for name, field_change in changes.items()
        if field_change.before != field_change.after
    }


def stored(network_id: int) -> Stored:
    """What is stored of a network, whether the network is there or not."""
    transactions = Transaction.objects.filter(network_id=str(network_id))
    return Stored(
        Cursor.objects.filter(pk=network_id).values_list("number", flat=True).first(),
        ContractEvent.objects.filter(network_id=str(network_id)).count(),
        Backfill.objects.filter(network_id=network_id, done_at=None).count(),
        SmartContract.objects.filter(network_id=network_id).count(),
        transactions.count(),
        transactions.filter(status=PENDING).count(),
    )


def remove(network_id: int, *, keep_data: bool = False, delete_data: bool = False) -> Stored:
    """Remove a network; what was stored of it.

    Without a choice only if nothing is stored (``HasData``). ``keep_data`` removes the network
    alone, which goes on where it was when it is added again. Otherwise its providers are removed,
    and with ``delete_data`` what the index has stored: position, headers, coverage, backfills,
    reorganisations, events and messages to subscribers, who aren't notified. Contracts,
    transactions, wallets and what the service has signed always stay.

    Safe beside workers: the network and its position are removed in one transaction under the
    cursor's lock, and a worker that was reading the network stores nothing more. Events and
    messages follow in batches; after an interruption, call it again. Raises ``ObjectNotFound``.
    """
    with maintenance.writing():
        row = _locked(network_id)
        cursors = Cursor.objects.filter(network_id=network_id)
        with orm_queries():
            cursors.select_for_update().first()
        data = stored(network_id)
        if row is None and not (data and delete_data):
            raise ObjectNotFound(f"There is no network {network_id}.")
        if data and not keep_data and not delete_data:
            raise HasData(network_id, data)
        if row is not None:
            service.delete(MASTER, _CLASS, ObjectId(row.object_id))
        if not keep_data:
            Provider.objects.filter(network_id=network_id).delete()
        if delete_data:
            for model in (Block, ProvedBlock, Coverage, Backfill, Recheck, Reorganisation):
                model._default_manager.filter(network_id=network_id).delete()
        # The number of the last message stays: subscribers may come back with it.
        reset = {"planned": 0, "looked_at": None, "moved_at": None, **RESET_CURSOR}
        with orm_queries():
            # Another version of the contracts makes every worker drop what it was about to store.
            cursors.update(contracts=next_version(), **(reset if delete_data else {}))
        now = retention.statement_time()
    if delete_data:
        retention.remove_network(network_id, now)
    log.warning("a network was removed", network=network_id, deleted=delete_data, data=str(data))
    return data


def _locked(network_id: int) -> Blockchain | None:
    return Blockchain.objects.select_for_update().filter(network_id=network_id).first()
