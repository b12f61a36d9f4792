"""Looking after what was signed, until it is final.

Each round hands over again what isn't in a block, since nodes forget, and finds out what is. A
transaction that waits too long is replaced automatically with higher fees; a nonce that others wait
behind is used up. Two rounds at once do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Max

from backend.kernel.errors import Held, ServiceError, UnderMaintenance
from backend.kernel.texts.redaction import mask_text
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from chain import monitor, rpc
from chain.core.failures import NodeFailure, Refused, TryAgain, Unavailable
from chain.core.node import Node, Receipt
from chain.core.transactions.broadcasts import Broadcast
from chain.core.transactions.fees import TooExpensive, gas_limit
from chain.models import Blockchain, Sending
from chain.rpc import contracts
from chain.rpc.contracts import Call, Prices, Reverted
from chain.sending import broadcast, nonces, slots
from chain.sending.outgoing import AT_ONCE, caps_of
from chain.sending.replacement import fill, raise_fees
from chain.sending.slots import Slot
from objects.database import hold, maintenance
from objects.database.statements import fetch_values

_AGAIN: Final = timedelta(seconds=10)
_SECONDS: Final = 15.0
_GIVEN_UP: Final = timedelta(hours=1)
"""A transaction that no node has taken for so long is given up, as its record is."""
_MOST_FILLED: Final = 10  # in one round

log = get_logger("sending")


def resend(network_id: int) -> None:
    """One round for a network."""
    with maintenance.recording():
        try:
            maintenance.check()
            hold.check("transactions")
            for account in slots.open_accounts(network_id):
                _look_after(account)
        except NodeFailure as failure:
            log.warning("not looked after", network=network_id, reason=str(failure))
        except (Held, UnderMaintenance):
            return
        except ServiceError as problem:
            # A lock or the signer: the next round tries again.
            log.warning("not looked after", network=network_id, reason=problem.message)


@dataclass(frozen=True, slots=True)
class _View:
    """What one node says of an account. ``used`` is how many of its nonces are used in the chain,
    ``used_finally`` in what can't change any more, None if the node doesn't know."""

    used: int
    finalized: int
    receipts: dict[str, Receipt]
    used_finally: int | None


def _look_after(account: nonces.Account) -> None:
    open_slots = slots.open_slots(account)
    view = rpc.attempt(
        account.network_id, lambda node: _seen(node, account, open_slots), seconds=_SECONDS
    )
    waiting: list[Slot] = []
    used_finally: int | None = None
    for slot in open_slots:
        if slots.settle(slot, view.receipts, view.finalized):
            continue
        slots.gone_again(slot)
        if slot.nonce < view.used:
            if slot.nonce < (view.used_finally or 0) and used_finally is None:
                used_finally = _surely_used(account, view.finalized)
            slots.passed(slot, finally_=slot.nonce < (used_finally or 0))
        elif slot.newest is not None:
            waiting.append(slot)
    if waiting:
        _bring_in(account, waiting, view)


def _seen(node: Node, account: nonces.Account, open_slots: list[Slot]) -> _View:
    # In this order: what the nonce says must not be newer than the receipts.
    used = contracts.nonce_of(node, account.address)
    hashes = [row.hash for slot in open_slots for row in slot.rows]
    receipts = {
        receipt.transaction_hash.lower(): receipt for receipt in node.receipts(hashes) if receipt
    }
    finalized = _finalized(node, account.network_id)
    _compare(node, open_slots, receipts, finalized)
    unexplained = any(
        slot.nonce < used and not any(row.hash in receipts for row in slot.rows)
        for slot in open_slots
    )
    used_finally = None
    if unexplained:
        with suppress(Refused):  # it may not have the state of that block
            used_finally = contracts.nonce_of(node, account.address, hex(finalized))
    return _View(used, finalized, receipts, used_finally)


def _surely_used(account: nonces.Account, finalized: int) -> int:
    """As ``used_finally`` of a view, by the word of two providers where the network has several."""

    def used(node: Node) -> int:
        return contracts.nonce_of(node, account.address, hex(finalized))

    try:
        return min(rpc.witnesses(account.network_id, used))
    except NodeFailure:
        return 0


def _finalized(node: Node, network_id: int) -> int:
    networks = Blockchain.objects.filter(network_id=network_id)
    depth = networks.values_list("finality_depth", flat=True).first()
    return monitor.certain_heights(node, network_id, depth).finalized


def _compare(
    node: Node, open_slots: list[Slot], receipts: dict[str, Receipt], finalized: int
) -> None:
    """Raise ``TryAgain`` if a receipt that says something new isn't of a block of the chain."""
    news = [
        receipt
        for slot in open_slots
        for row in slot.rows
        if (receipt := receipts.get(row.hash)) and not slots.is_known(row, receipt, finalized)
    ]
    places = sorted({receipt.height for receipt in news})
    headers = dict(zip(places, node.headers(places), strict=True))
    for receipt in news:
        header = headers[receipt.height]
        if header is None or header.hash.lower() != receipt.block_hash.lower():
            raise TryAgain("a receipt that isn't of the chain's blocks")
        if receipt.transaction_hash.lower() not in map(str.lower, node.transactions_in(header)):
            raise TryAgain("a receipt of a transaction that its block doesn't have")


def _bring_in(account: nonces.Account, waiting: list[Slot], view: _View) -> None:
    """Hand over what isn't mined, replace what is stuck, and fill gaps."""
    now = _now()
    due = [slot for slot in waiting if slot.newest is not None and _is_due(slot.newest, now)]
    raws = [slot.newest.raw for slot in due if slot.newest is not None]
    answers = _broadcast(account.network_id, raws)
    costly = [
        slot
        for slot, (meaning, text) in zip(due, answers, strict=True)
        if _is_to_replace(account, slot, meaning, mask_text(text), view, now)
    ]
    gaps = _gaps(account, waiting, view) or _missing(account, waiting[0], view, now)
    if view.used < waiting[0].nonce and view.used not in gaps:
        # A chain that was restarted, a node that is behind, or one that has lied.
        log.warning(
            "nonce missing",
            network=account.network_id,
            account=account.address,
            used=view.used,
            waiting=waiting[0].nonce,
        )
    if not costly and not gaps:
        return
    prices = rpc.attempt(account.network_id, contracts.prices, seconds=_SECONDS)
    for slot in costly:
        assert slot.newest is not None
        _replace(account, slot.newest, prices)
    for nonce in gaps:
        _fill(account, nonce, prices)


def _broadcast(network_id: int, raws: Sequence[str]) -> list[tuple[Broadcast, str]]:
    """What became of these transactions; the error of the last node if none takes any of them."""
    try:
        return rpc.attempt(
            network_id, lambda node: contracts.broadcast_all(node, raws), seconds=_SECONDS
        )
    except Unavailable as failure:
        if failure.refusal is None:
            raise
        return [(Broadcast.UNCLEAR, failure.refusal.message[:200])] * len(raws)


def _now() -> datetime:
    """By the database's clock, as the rows have it."""
    sql = "SELECT date_part('epoch', clock_timestamp())"
    [seconds] = fetch_values(float, sql, (), prepare=True)
    return datetime.fromtimestamp(seconds, UTC)


def _is_due(row: Sending, now: datetime) -> bool:
    if row.state == nonces.SIGNED:
        return now - row.created_at > AT_ONCE
    return row.sent_at is None or now - row.sent_at > _AGAIN


def _is_to_replace(
    account: nonces.Account,
    slot: Slot,
    meaning: Broadcast,
    text: str,
    view: _View,
    now: datetime,
) -> bool:
    """Write down what a node has said, and say whether higher fees would help."""
    row = slot.newest
    assert row is not None
    if meaning is Broadcast.TAKEN:
        broadcast.taken(row)
        return slot.nonce == view.used and _is_stuck(account, row, now)
    if meaning is Broadcast.NONCE_USED:
        return False  # the next round finds out by what
    if row.state == nonces.SIGNED and now - row.created_at > _GIVEN_UP:
        broadcast.ended(row, nonces.REFUSED, text)
        return False
    broadcast.waits(row, text)
    if meaning is not Broadcast.UNDERPRICED:
        return False
    # With one row that no node has ever taken, it is not ours what has the nonce.
    return not (row.state == nonces.SIGNED and len(slot.rows) == 1 and "replac" in text.lower())


def _is_stuck(account: nonces.Account, row: Sending, now: datetime) -> bool:
    """Whether it was the account's next one for too long."""
    before = Sending.objects.filter(
        network_id=account.network_id, account=account.address, nonce__lt=row.nonce
    )
    mined_at = before.aggregate(last=Max("mined_at"))["last"]
    since = max((at for at in (row.sent_at, mined_at) if at is not None), default=now)
    return now - since > timedelta(seconds=service_settings.STUCK_AFTER)


def _gaps(account: nonces.Account, waiting: list[Slot], view: _View) -> list[int]:
    """Nonces that no transaction has, and others wait behind."""
    last = max(slot.nonce for slot in waiting)
    free = nonces.free_nonces(account, view.used)
    return [nonce for nonce in free if nonce < last][:_MOST_FILLED]


def _missing(account: nonces.Account, first: Slot, view: _View, now: datetime) -> list[int]:
    """Nonces that others had used when ours were given out, and that are free again: a node
    has dropped what was sent from the account elsewhere. Only when ours have waited for long, and
    no more than an account may have waiting."""
    row = first.newest
    assert row is not None
    if not 0 < first.nonce - view.used <= nonces.WIDEST or not _is_stuck(account, row, now):
        return []
    pending = rpc.attempt(
        account.network_id,
        lambda node: contracts.nonce_of(node, account.address, "pending"),
        seconds=_SECONDS,
    )
    return nonces.unknown_nonces(account, max(view.used, pending), first.nonce)[:_MOST_FILLED]


def _replace(account: nonces.Account, row: Sending, prices: Prices) -> None:
    try:
        offer = prices.offer(caps_of(account.network_id))
    except TooExpensive as problem:
        broadcast.waits(row, str(problem))
        return
    new = raise_fees(account, row, offer)
    if new is not None:
        _hand_over(new)


def _fill(account: nonces.Account, nonce: int, prices: Prices) -> None:
    try:
        offer = prices.offer(caps_of(account.network_id))
        nothing = Call(account.address, "0x", account.address)
        needed = rpc.attempt(
            account.network_id, lambda node: contracts.estimate(node, nothing), seconds=_SECONDS
        )
    except (TooExpensive, Reverted, Unavailable) as problem:
        log.warning("nonce not filled", network=account.network_id, reason=str(problem))
        return
    new = fill(account, nonce, gas_limit(needed, prices.gas_limit), offer)
    if new is not None:
        _hand_over(new)


def _hand_over(row: Sending) -> None:
    meaning, text = broadcast.hand_over(row)
    if meaning is Broadcast.TAKEN:
        broadcast.taken(row)
    else:
        broadcast.waits(row, mask_text(text))
