"""How much of what a provider says is checked."""

from __future__ import annotations

from typing import NamedTuple

from backend.conf import service_settings
from chain.models import VERIFY_ALL


class Scheme(NamedTuple):
    """``share`` is the share of blocks whose receipts are compared with the logs although nothing
    is suspicious; ``every_block`` means each block that may have wanted logs, and headers whose
    hashes are computed."""

    every_block: bool
    share: float

    @classmethod
    def of(cls, verify: str) -> Scheme:
        """The scheme of a network with this setting ``verify``."""
        every_block = verify == VERIFY_ALL
        return cls(every_block, 1.0 if every_block else service_settings.VERIFY_PERCENT / 100)

    @classmethod
    def strict(cls) -> Scheme:
        """Every block is checked, whatever the setting."""
        return cls(True, 1.0)
