"""Whether a pending transaction may have been replaced or dropped.

That a node doesn't know a transaction proves nothing: nodes forget, and replicas lag behind by
hours. So it is *suspected* only if it was missing at two checks, half a minute apart at least, and
its account's nonce has passed it in a block that is final, by the word of two providers where
there are two. It stays pending all the same until its
hour is over; and the suspicion ends as soon as a node knows it again.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from chain.core.names import address_of
from chain.core.node import SentTransaction

APART: Final = 30_000
_EARLY: Final = 2
_EVERY: Final = 8
_LARGEST_NONCE: Final = 2**63


class Sighting(msgspec.Struct, frozen=True, gc=False):
    """What nodes say of a transaction that isn't mined. Times are milliseconds."""

    nonce: int | None = None
    from_address: str | None = None
    to: str | None = None
    missing_since: int | None = None
    missing_checks: int = 0
    suspected: bool = False


def is_worth_asking(sighting: Sighting, attempts: int) -> bool:
    """Whether to ask for the transaction itself after this many checks in vain.

    At the first ones, to learn its account and nonce; then every four minutes; and each time while
    one that is known is missing, until it is suspected.
    """
    if sighting.nonce is None and attempts <= _EARLY:
        return True
    is_missing = sighting.missing_checks > 0 and sighting.nonce is not None
    return (is_missing and not sighting.suspected) or attempts % _EVERY == _EARLY


def after_asking(sighting: Sighting, transaction: SentTransaction | None, now: int) -> Sighting:
    """What is known by now. Raises ``ValueError`` for what can't be a transaction."""
    if transaction is None:
        since = now if sighting.missing_since is None else sighting.missing_since
        return replace(sighting, missing_since=since, missing_checks=sighting.missing_checks + 1)
    nonce = int(transaction.nonce, 16)
    if not 0 <= nonce < _LARGEST_NONCE:
        raise ValueError("a transaction with a nonce out of range")
    to = None if transaction.to is None else address_of(transaction.to.lower())
    return Sighting(nonce, address_of(transaction.from_address.lower()), to)


def is_to_be_judged(sighting: Sighting, now: int) -> bool:
    """Whether the account's final nonce would decide."""
    return (
        not sighting.suspected
        and sighting.nonce is not None
        and sighting.from_address is not None
        and sighting.missing_checks > 1
        and sighting.missing_since is not None
        and now - sighting.missing_since >= APART
    )


def is_passed(sighting: Sighting, final_nonce: int) -> bool:
    """Whether the account has used the transaction's nonce in a final block."""
    return sighting.nonce is not None and final_nonce > sighting.nonce
