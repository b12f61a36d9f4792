"""How much of what a provider says is checked."""

from __future__ import annotations

from typing import NamedTuple

from backend.conf import service_settings
from chain.models import VERIFY_ALL, Blockchain


class Scheme(NamedTuple):
    """``share`` is the share of the blocks with events whose receipts are compared with the logs
    although nothing is suspicious. ``every_block`` means all of them, and that everything that the
    headers of the network prove has to be proved: their own hashes, and the roots of receipts."""

    every_block: bool
    share: float

    @classmethod
    def of(cls, verify: str) -> Scheme:
        """The scheme of a network with this setting ``verify``."""
        every_block = verify == VERIFY_ALL
        return cls(every_block, 1.0 if every_block else service_settings.VERIFY_PERCENT / 100)

    @classmethod
    def of_network(cls, network_id: int) -> Scheme:
        """The scheme of a network by its id."""
        found = Blockchain.objects.filter(network_id=network_id)
        return cls.of(found.values_list("verify", flat=True).first() or "")

    @property
    def thorough(self) -> Scheme:
        """The same with the receipts of all blocks that may have events."""
        return self._replace(share=1.0)
