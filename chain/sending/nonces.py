"""Nonces: given out one after the other for each account and network, none twice, none left out.

Taking one holds the lock of the account's row until the transaction with it is signed and
stored, in one transaction of the database. So a nonce is either stored with what was signed for
it, or not taken. The nonce of a transaction that no node takes is free, and the next one has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from django.contrib.postgres.aggregates import BoolAnd
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from chain.core.transactions.encoding import Unsigned, hash_of_raw
from chain.core.transactions.fees import Fees
from chain.models import Sending, SigningAccount
from objects.database.orm import orm_queries

SIGNED, SENT, MINED, FINAL = "signed", "sent", "mined", "final"
REPLACED, REFUSED, LOST = "replaced", "refused", "lost"
OPEN = (SIGNED, SENT, MINED)
FILLER = "fill"
"""The purpose of a transaction that does nothing but use a nonce up."""
WIDEST: Final = 64
"""So many transactions of one account wait at a node, at most, that come from elsewhere; of nonces
that are farther away a node has not told the truth."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account that sends on a network."""

    network_id: int
    address: str


def lock(account: Account) -> int | None:
    """Have the account for this transaction of the database; the next nonce that is fresh, None
    if nothing was sent yet. Raises ``Timeout`` if others take too long with it."""
    row = SigningAccount(network_id=account.network_id, address=account.address)
    with orm_queries():
        SigningAccount.objects.bulk_create([row], ignore_conflicts=True)
        return _row(account).select_for_update().values_list("next_nonce", flat=True).get()


def fresh_nonce(account: Account) -> int | None:
    """As ``lock``, of an account that others may have: by now it may be higher."""
    return _row(account).values_list("next_nonce", flat=True).first()


def _row(account: Account) -> QuerySet[SigningAccount]:
    return SigningAccount.objects.filter(network_id=account.network_id, address=account.address)


def _sendings(account: Account) -> QuerySet[Sending]:
    """What was signed for an account, by nonce."""
    rows = Sending.objects.filter(network_id=account.network_id, account=account.address)
    return rows.order_by("nonce")


def take(account: Account, fresh: int | None, on_chain: int) -> int:
    """The nonce for the next transaction of a locked account.

    ``fresh`` is what ``lock`` gave, ``on_chain`` what the network says is next, transactions that
    wait among them. A lower one than ``fresh`` is only used if it is known to be free, or lies
    before a gap that can't exist.
    """
    below = [*free_nonces(account, on_chain)[:1], *left_out(account, fresh, on_chain)]
    if below:
        return min(below)
    nonce = max(on_chain, fresh or 0)
    _row(account).update(next_nonce=nonce + 1)
    return nonce


def free_nonces(account: Account, first: int) -> list[int]:
    """Nonces from ``first`` on whose transactions were all refused, lowest first."""
    with orm_queries():
        nonces = _sendings(account).filter(nonce__gte=first).values_list("nonce", flat=True)
        return [*nonces.annotate(is_free=BoolAnd(Q(state=REFUSED))).filter(is_free=True)]


def left_out(account: Account, fresh: int | None, first: int) -> list[int]:
    """The lowest nonce from ``first`` on that the service has signed nothing for, if more than
    ``WIDEST`` are so before one of its own or ``fresh``: a node has reported a nonce that was far
    too high. Otherwise empty."""
    if fresh is None or fresh - first <= WIDEST:
        return []
    with orm_queries():
        signed = _sendings(account).filter(nonce__gte=first).values_list("nonce", flat=True)
        nonces = sorted({*signed, fresh})
    for before, nonce in pairwise([first - 1, *nonces]):
        if nonce - before - 1 > WIDEST:
            return [before + 1]
    return []


def unknown_nonces(account: Account, first: int, end: int) -> list[int]:
    """Those of these nonces, below ``end``, that the service has never signed anything for."""
    with orm_queries():
        signed = _sendings(account).filter(nonce__gte=first, nonce__lt=end)
        return sorted({*range(first, end)}.difference(signed.values_list("nonce", flat=True)))


def store(account: Account, unsigned: Unsigned, raw: bytes, purpose: str) -> Sending:
    """Write down what was signed, before anybody is handed it.

    The same bytes may be there: what was refused and is wanted again with the same nonce is the
    same transaction, and so is what is done again on a chain that was restarted.
    """
    fees, tx_hash = unsigned.fees, hash_of_raw(raw)
    again = Sending.objects.filter(hash=tx_hash).exclude(state__in=OPEN)
    if again.update(
        state=SIGNED,
        created_at=Now(),
        sent_at=None,
        block_number=None,
        mined_at=None,
        passed_at=None,
        trouble=None,
        purpose=purpose,
    ):
        return Sending.objects.get(hash=tx_hash)
    return Sending.objects.create(
        network_id=account.network_id,
        account=account.address,
        nonce=unsigned.nonce,
        hash=tx_hash,
        raw=f"0x{raw.hex()}",
        to=unsigned.to,
        value=str(unsigned.value),
        data=unsigned.data,
        gas=unsigned.gas,
        max_fee=str(fees.max_fee),
        priority_fee=None if fees.priority_fee is None else str(fees.priority_fee),
        purpose=purpose,
        state=SIGNED,
    )


def unsigned_of(row: Sending) -> Unsigned:
    """The transaction that a row was signed from."""
    priority = None if row.priority_fee is None else int(row.priority_fee)
    return Unsigned(
        row.network_id,
        row.nonce,
        row.to or "",
        int(row.value),
        row.data,
        row.gas,
        Fees(int(row.max_fee), priority),
    )
