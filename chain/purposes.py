"""What the chain's secrets are encrypted for (``backend.kernel.encryption``). A purpose never
changes: what was encrypted for one can't be read by another."""

from __future__ import annotations

from typing import Final

PROVIDER: Final = "chain provider"
WALLET: Final = "chain wallet"
