"""What the chain app plugs into the object service, all of it in one list."""

from __future__ import annotations

from importlib import import_module

from chain.models import Provider, Wallet
from chain.purposes import PROVIDER, WALLET
from chain.records.classes import offer_classes
from objects.reencryption import encrypted_column


def wire() -> None:
    """Connect everything. ``ChainConfig.ready`` calls it once."""
    # Tasks are sent by their names (``backend.tasks.registered``).
    import_module("chain.tasks")
    # ``Blockchain``, ``SmartContract``, ``Transaction``, ``ContractEvent`` and ``Identity``.
    offer_classes()
    # What ``manage.py rotate_keys`` encrypts again.
    encrypted_column(Provider, "url", PROVIDER)
    encrypted_column(Provider, "socket_url", PROVIDER)
    encrypted_column(Wallet, "key", WALLET)
