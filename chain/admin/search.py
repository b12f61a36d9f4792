"""What the search of the admin finds in this app: networks, contracts, transactions, wallets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from backend.site.search import Result, search_source
from chain.core.names import address_of, hash_of
from chain.models import Blockchain, Identity, SmartContract, Transaction, Wallet
from objects.admin.people.pages import names_of

_MOST: Final = 6
_NETWORKS: Final = 500
_CONTRACTS: Final = 1000
_SHORTEST_ADDRESS: Final = 20


@search_source("Networks", icon="hub", position=60, permission="chain.view_blockchain")
def networks(request: HttpRequest, text: str) -> Iterator[Result]:
    """Networks by their names and numbers."""
    link = reverse("admin:networks")
    for network in Blockchain.objects.filter(network_id__isnull=False)[:_NETWORKS]:
        yield Result(network.name or str(network), link, f"network {network.network_id}")


@search_source("Contracts", icon="contract", position=62, permission="chain.view_smartcontract")
def contracts(request: HttpRequest, text: str) -> Iterator[Result]:
    """Contracts by their addresses, and the first ones also by their names."""
    address = _address(text)
    rows = SmartContract.objects.only("name", "address", "network_id").order_by("pk")
    if address is not None:
        networks = Blockchain.objects.filter(network_id__isnull=False).order_by("pk")
        ids = list(networks.values_list("network_id", flat=True)[:_NETWORKS])
        # Of the index that contracts are unique by.
        rows = rows.filter(network_id__in=ids, address=address)
    for contract in rows[:_CONTRACTS]:
        link = reverse("admin:chain_smartcontract_change", args=(contract.pk,))
        detail = f"{contract.address} on network {contract.network_id}"
        yield Result(contract.name or contract.address or "", link, detail)


@search_source(
    "Transactions", icon="receipt_long", position=64, permission="chain.view_transaction"
)
def transactions(request: HttpRequest, text: str) -> Iterator[Result]:
    """Transactions by their hashes."""
    try:
        digest = hash_of(text)
    except ValueError:
        return
    for transaction in Transaction.objects.filter(hash=digest)[:_MOST]:
        link = reverse("admin:chain_transaction_change", args=(transaction.pk,))
        detail = f"{transaction.status} on network {transaction.network_id}"
        yield Result(digest, link, detail, is_match=True)


@search_source("Wallets", icon="wallet", position=66, permission="objects.view_user")
def wallets(request: HttpRequest, text: str) -> Iterator[Result]:
    """Users by the addresses of their wallets."""
    if len(text) < _SHORTEST_ADDRESS:
        return
    address = _address(text) or text
    user_ids: list[str | None] = []
    if request.user.has_perm("chain.view_identity"):
        identities = Identity.objects.filter(wallet_address=address)
        user_ids += identities.values_list("user", flat=True)[:_MOST]
    if request.user.has_perm("chain.view_wallet"):
        user_ids += Wallet.objects.filter(address=address).values_list("user_id", flat=True)[:_MOST]
    ids = {user_id for user_id in user_ids if user_id}
    for user_id, name in names_of(ids).items():
        link = reverse("admin:people_user", args=(user_id,))
        yield Result(name or user_id, link, address, is_match=True)


def _address(text: str) -> str | None:
    try:
        return address_of(text)
    except ValueError:
        return None
