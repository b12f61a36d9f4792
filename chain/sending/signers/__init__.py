"""Signers: who signs for the service on a network.

A signer has an address, and signs. Its key is in the environment, in an encrypted keystore file,
or with another service (web3signer); it is never in the database, a log, an error or a response.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Protocol

from backend.kernel.errors import ScriptFailed
from backend.settings.conf import service_settings
from chain.core.names import address_of
from chain.core.transactions.encoding import Unsigned
from chain.sending.signers.keystore import read_keystore
from chain.sending.signers.local import LocalSigner
from chain.sending.signers.problems import CannotSign
from chain.sending.signers.remote import RemoteSigner

__all__ = ["CannotSign", "Signer", "configured_networks", "signer_for"]


class Signer(Protocol):
    """An account that can sign. Both may raise ``CannotSign``."""

    @property
    def address(self) -> str:
        """The account, checksummed."""

    def sign(self, transaction: Unsigned) -> bytes:
        """The signed transaction, as it is sent. It is this account's signature: what another
        service has answered is checked."""


def signer_for(network_id: int) -> Signer:
    """The network's signer, or the one for all networks.

    Raises ``ScriptFailed`` if there is none, and ``CannotSign`` if it can't be used. Reading a
    keystore takes a second, once for each process.
    """
    for network in (network_id, None):
        signer = _signer(network)
        if signer is not None:
            return signer
    raise ScriptFailed(f"No signer is configured for network {network_id}.")


def configured_networks() -> list[int | None]:
    """The networks that have a signer of their own; None among them if there is one for all."""
    networks = {
        *service_settings.SIGNER_PRIVATE_KEY,
        *service_settings.SIGNER_KEYSTORE,
        *service_settings.SIGNER_URL,
    }
    return sorted(networks, key=lambda network: network or 0)


def _signer(network: int | None) -> Signer | None:
    stated = service_settings.SIGNER_ADDRESS.get(network)
    address = None if stated is None else address_of(stated.lower())
    key = service_settings.SIGNER_PRIVATE_KEY.get(network)
    signer: Signer
    if key is not None:
        signer = LocalSigner(bytes.fromhex(key.value))
    elif network in service_settings.SIGNER_KEYSTORE:
        passwords = service_settings.SIGNER_KEYSTORE_PASSWORD
        password = passwords.get(network) or passwords.get(None)
        path = Path(service_settings.SIGNER_KEYSTORE[network])
        signer = read_keystore(path, "" if password is None else password.value)
    elif network in service_settings.SIGNER_URL:
        return _remote(
            service_settings.SIGNER_URL[network].value, address, service_settings.SIGNER_TIMEOUT
        )
    else:
        return None
    if address is not None and signer.address != address:
        raise CannotSign("SIGNER_ADDRESS is not the address of the signer's key")
    return signer


@lru_cache(maxsize=64)
def _remote(url: str, address: str | None, timeout: float) -> RemoteSigner:
    # Kept: it knows by which name the other service calls the key.
    return RemoteSigner(url, address, timeout=timeout)
