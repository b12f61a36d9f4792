"""The version of a network's set of contracts, by which indexers notice that it has changed."""

from __future__ import annotations

from django.db import transaction

from backend.kernel.json_types import Wire
from chain.core.names import network_of
from chain.dispatch import start_backfills
from chain.models import Cursor
from chain.models.expressions import next_version
from objects.database.orm import orm_queries


def contracts_changed(*versions: Wire) -> None:
    """Have the networks of these contracts read with another set of contracts from now on, and
    their history be read as soon as that is committed."""
    networks = {
        network_of(contract["networkId"]) for contract in versions if contract.get("networkId")
    }
    with orm_queries(), transaction.atomic():
        for network_id in sorted(networks):
            Cursor.objects.bulk_create([Cursor(network_id=network_id)], ignore_conflicts=True)
            Cursor.objects.filter(network_id=network_id).update(contracts=next_version())
            start_backfills(network_id)


def every_network_changed() -> None:
    """The same for all networks."""
    with orm_queries():
        Cursor.objects.update(contracts=next_version())
