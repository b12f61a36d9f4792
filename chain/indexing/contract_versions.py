"""The version of a network's set of contracts, by which indexers notice that it has changed."""

from __future__ import annotations

from django.db import transaction

from backend.kernel.json_types import Wire
from chain.core.names import network_of
from chain.dispatch import start_backfills
from objects.database.statements import fetch
from objects.definitions.models import VERSION_SEQUENCE

# From one sequence, so that no version comes twice, not even after a write that was undone.
NEXT_VERSION = f"nextval('{VERSION_SEQUENCE}')"


def contracts_changed(*versions: Wire) -> None:
    """Have the networks of these contracts read with another set of contracts from now on, and
    their history be read as soon as that is committed."""
    networks = {
        network_of(contract["networkId"]) for contract in versions if contract.get("networkId")
    }
    with transaction.atomic():
        for network_id in sorted(networks):
            fetch(
                f"INSERT INTO chain_cursor (network_id, contracts) VALUES (%s, {NEXT_VERSION})"
                f" ON CONFLICT (network_id) DO UPDATE SET contracts = {NEXT_VERSION}",
                (network_id,),
                prepare=True,
            )
            start_backfills(network_id)


def every_network_changed() -> None:
    """The same for all networks."""
    fetch(f"UPDATE chain_cursor SET contracts = {NEXT_VERSION}", (), prepare=True)
