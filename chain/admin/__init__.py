"""The admin's pages of the chain: networks, providers, contracts, transactions, events."""

from __future__ import annotations

from chain.admin import (  # noqa: F401 (register)
    contracts,
    networks,
    providers,
    records,
    resume,
    search,
    wallets,
)
