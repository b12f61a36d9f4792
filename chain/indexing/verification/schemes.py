"""How much of what a provider says is checked."""

from __future__ import annotations

from typing import NamedTuple

from backend.settings.conf import service_settings
from chain.models import VERIFY_ALL, Blockchain


class Scheme(NamedTuple):
    """``share`` is the share of the blocks with events whose receipts are compared with the logs
    although nothing is suspicious. ``every_block`` means all of them, and that everything that the
    headers of the network prove has to be proved: their own hashes, and the roots of receipts.
    ``queues_rechecks`` means that recent blocks are audited after a contradiction, since some of
    them were stored without a comparison of their receipts."""

    every_block: bool
    share: float
    queues_rechecks: bool

    @classmethod
    def of(cls, verify: str) -> Scheme:
        """The scheme of a network with this setting ``verify``."""
        if verify == VERIFY_ALL:
            return cls(every_block=True, share=1.0, queues_rechecks=False)
        share = service_settings.VERIFY_PERCENT / 100
        return cls(every_block=False, share=share, queues_rechecks=share < 1)

    @classmethod
    def of_network(cls, network_id: int) -> Scheme:
        """The scheme of a network by its id."""
        networks = Blockchain.objects.filter(network_id=network_id)
        return cls.of(networks.values_list("verify", flat=True).first() or "")

    @property
    def thorough(self) -> Scheme:
        """The same with the receipts of all blocks that may have events."""
        return self._replace(share=1.0)
