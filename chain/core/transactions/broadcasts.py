"""What a node's answer to ``eth_sendRawTransaction`` means, by the texts of the usual nodes."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final


class Broadcast(Enum):
    """What became of a transaction that was handed to a node."""

    TAKEN = "taken"
    """The node has it, now or already."""
    NONCE_USED = "nonce used"
    """A transaction with this nonce is in a block: this one, a replacement, or another."""
    UNDERPRICED = "underpriced"
    """The node may take it with higher fees, or later."""
    IMPOSSIBLE = "impossible"
    """No node takes it, as things are: the account hasn't enough, or it can't be valid."""
    UNCLEAR = "unclear"
    """Nothing is known: it may be mined or not."""


# In this order: the first that fits.
_TEXTS: Final = (
    (
        Broadcast.NONCE_USED,
        r"nonce\s*(is\s*)?(too\s*(low|small)|below)|old\s*nonce|nonce.*(already|been) used"
        r"|nonce expired",
    ),
    (
        Broadcast.TAKEN,
        r"already\s*(known|imported|exists|in (the )?(mem|tx)?pool)|known transaction",
    ),
    (
        Broadcast.UNDERPRICED,
        r"underpriced|replace(ment)?\b.*(fee|price|existing)|could not replace"
        r"|fee\s*too\s*low|FeePerGas too low"
        r"|gas ?price( supplied)?( is)? too low|price.*(less|lower|below).*(base|min)"
        r"|(fee ?cap|max ?fee).*(less|lower|below)|tip (cap )?too low",
    ),
    (
        Broadcast.IMPOSSIBLE,
        r"insufficient\s*(funds|balance)|not enough (funds|balance)|overshot"
        r"|intrinsic gas|exceeds (the )?(block )?gas limit|gas limit (is )?(too|exceed)"
        r"|exceeds? (the )?configured cap|invalid (sender|signature|chain ?id|transaction type)"
        r"|(wrong|incorrect) chain|replay-protected|type not supported|oversized data"
        r"|max ?initcode",
    ),
)
_MEANINGS = [(meaning, re.compile(text, re.IGNORECASE)) for meaning, text in _TEXTS]


def meaning_of(message: str) -> Broadcast:
    """The meaning of an error's text."""
    for meaning, text in _MEANINGS:
        if text.search(message):
            return meaning
    return Broadcast.UNCLEAR
