"""A custodian for development: addresses that are the same for the same user, and no keys.

What is sent to them can never be moved. It is never chosen by default.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from chain.core.names import checksummed
from chain.wallets.adapters import Custodian, Made, Owner, Proof


class Mock(Custodian):
    """See the module."""

    name = "mock"

    def create(self, owner: Owner, networks: Sequence[str], proof: Proof | None) -> Iterator[Made]:
        for network in networks:
            digest = hashlib.sha256(f"mock {owner.user_id} {network}".encode()).hexdigest()
            yield Made(f"mock-{digest[:24]}", network, checksummed(f"0x{digest[24:]}"))
