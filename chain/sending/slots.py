"""One nonce of an account, with all that was signed for it: at most one of them is ever mined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Coalesce, Now

from backend.logs.setup import get_logger
from chain.core.node import Receipt
from chain.models import Sending, Transaction
from chain.models.expressions import touched
from chain.sending.nonces import (
    FINAL,
    LOST,
    MINED,
    OPEN,
    REFUSED,
    REPLACED,
    SENT,
    SIGNED,
    Account,
)
from objects.database.orm import orm_queries

MOST_AT_ONCE: Final = 200
_CERTAIN: Final = timedelta(seconds=30)

log = get_logger("sending")


@dataclass(frozen=True, slots=True)
class Slot:
    """A nonce that is under way; ``rows`` are all that was signed for it, oldest first."""

    nonce: int
    rows: tuple[Sending, ...]

    @property
    def newest(self) -> Sending | None:
        """The one that is being brought into the chain; None if none is."""
        waiting = [row for row in self.rows if row.state in OPEN]
        return waiting[-1] if waiting else None


def open_accounts(network_id: int) -> list[Account]:
    """The accounts of a network with transactions under way."""
    sendings = Sending.objects.filter(network_id=network_id, state__in=OPEN)
    addresses = sendings.order_by("account").values_list("account", flat=True).distinct()
    return [Account(network_id, address) for address in addresses]


def open_slots(account: Account) -> list[Slot]:
    """The nonces under way, lowest first; no more than fit into one round."""
    of_account = Sending.objects.filter(network_id=account.network_id, account=account.address)
    numbers: set[int] = set()
    # Those that wait to be final must not displace others.
    for states in ((SIGNED, SENT), (MINED,)):
        nonces = of_account.filter(state__in=states).order_by("nonce").values_list("nonce")
        numbers.update(nonce for (nonce,) in nonces.distinct()[:MOST_AT_ONCE])
    slots: dict[int, list[Sending]] = {number: [] for number in sorted(numbers)}
    for row in of_account.filter(nonce__in=numbers).order_by("nonce", "id"):
        slots[row.nonce].append(row)
    return [Slot(number, tuple(rows)) for number, rows in slots.items()]


def is_known(row: Sending, receipt: Receipt, finalized: int) -> bool:
    """Whether a receipt says no more of a transaction than is stored."""
    return (row.state, row.block_number) == (_state_of(receipt, finalized), receipt.height)


def _state_of(receipt: Receipt, finalized: int) -> str:
    return FINAL if receipt.height <= finalized else MINED


def settle(slot: Slot, receipts: Mapping[str, Receipt], finalized: int) -> bool:
    """Write down which one was mined, if one was; whether that is so. The receipts have been
    compared with the chain's blocks."""
    mined = [row for row in slot.rows if row.hash in receipts]
    if not mined:
        return False
    winner = mined[0]
    height = receipts[winner.hash].height
    state = _state_of(receipts[winner.hash], finalized)
    losers = [row for row in slot.rows if row is not winner]
    if is_known(winner, receipts[winner.hash], finalized) and not any(
        row.state in OPEN for row in losers
    ):
        return True
    if winner.state in (REFUSED, LOST):
        log.error("a transaction was mined after all", network=winner.network_id, hash=winner.hash)
    Sending.objects.filter(id__in=[row.id for row in losers], state__in=(*OPEN, LOST)).update(
        state=REPLACED
    )
    Sending.objects.filter(id=winner.id).update(
        state=state,
        block_number=height,
        mined_at=Coalesce("mined_at", Now()),
        passed_at=None,
        trouble=None,
    )
    link(winner.hash, [row.hash for row in losers])
    return True


def link(winner: str, losers: Iterable[str]) -> None:
    """Have the records of the others say which transaction has their place."""
    hashes = {winner, *losers}
    with orm_queries(), transaction.atomic():
        records = Transaction.objects.filter(hash__in=hashes)
        # Locked in the order of their ids, as every writer of several records does.
        [*records.select_for_update().order_by("object_id").values_list("object_id")]
        replaced = records.exclude(hash=winner).exclude(replaced_by=winner)
        replaced.update(replaced_by=winner, updated_at=touched())
        mined = records.filter(hash=winner, replaced_by__isnull=False)
        mined.update(replaced_by=None, updated_at=touched())


def gone_again(slot: Slot) -> None:
    """The block that one of them was in isn't in the chain any more."""
    ids = [row.id for row in slot.rows if row.state == MINED]
    if ids:
        Sending.objects.filter(id__in=ids, state=MINED).update(
            state=SENT, block_number=None, mined_at=None
        )
        for row in slot.rows:
            if row.id in ids:
                row.state = SENT


def passed(slot: Slot, *, finally_: bool) -> None:
    """The account has used the nonce, and none of these is mined as far as the node knows.

    Only what two looks, half a minute apart, say of what can't change any more is believed: a node
    may know an account's nonce before it knows the receipt. Nothing is signed again then: a caller
    that wanted it has to say so again.
    """
    ids = [row.id for row in slot.rows if row.state in OPEN]
    waiting = Sending.objects.filter(id__in=ids, state__in=OPEN)
    if not finally_:
        waiting.update(trouble="the account has used its nonce for something else, it seems")
        return
    waiting.filter(passed_at=None).update(passed_at=Now())
    certain = waiting.filter(passed_at__lt=Now() - _CERTAIN)
    if certain.update(state=LOST, trouble="the account has used its nonce for something else"):
        log.error(
            "a signer's account is used elsewhere",
            network=slot.rows[0].network_id,
            account=slot.rows[0].account,
            nonce=slot.nonce,
        )
