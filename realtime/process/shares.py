"""Limits on the memory that all clients of a process, and those of one address, hold."""

from __future__ import annotations

from collections import Counter

from backend.kernel.errors import RateLimited, ServiceUnavailable
from backend.kernel.networks import client_network


class Shares:
    """Bytes that are held, in all and by address. Belongs to the event loop.

    Without an address clients can't be distinguished: only ``most`` counts then.
    """

    def __init__(self, what: str, most: int, most_of_address: int) -> None:
        self.total = 0
        self._what = what
        self._most = most
        self._most_of_address = most_of_address
        self._held: Counter[str] = Counter()

    def take(self, address: str, size: int, instead_of: int = 0) -> None:
        """Hold bytes until they are given back; ``instead_of`` will be given back soon.

        Raises ``RateLimited`` if that is too much for the address and ``ServiceUnavailable`` if it
        is too much for the process; nothing is held then.
        """
        network = client_network(address)
        more = size - instead_of
        if network and more > 0 and self._held[network] + more > self._most_of_address:
            raise RateLimited(f"{self._what} of this address are too large together.")
        if more > 0 and self.total + more > self._most:
            raise ServiceUnavailable(f"{self._what} of all clients are too large together.")
        self.hold(address, size)

    def hold(self, address: str, size: int) -> None:
        """Hold more bytes without a check: they were checked by ``take`` before."""
        self.total += size
        self._held[client_network(address)] += size

    def give_back(self, address: str, size: int) -> None:
        """Give bytes back."""
        network = client_network(address)
        self.total -= size
        self._held[network] -= size
        if self._held[network] <= 0:
            del self._held[network]
