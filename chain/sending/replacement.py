"""Signing for a nonce again: with higher fees what is stuck, with nothing what is left out."""

from __future__ import annotations

from typing import Final

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from chain.core.transactions.encoding import Unsigned
from chain.core.transactions.fees import Fees, in_gwei, raised
from chain.models import Sending
from chain.sending import broadcast, nonces
from chain.sending.outgoing import caps_of, sign_and_store, usable_signer
from chain.sending.signers import Signer
from chain.sending.slots import link
from objects.database import maintenance

_WAITING: Final = (nonces.SIGNED, nonces.SENT)

log = get_logger("sending")


def raise_fees(account: nonces.Account, stuck: Sending, now: Fees) -> Sending | None:
    """Replace a transaction by the same one with higher fees; None if the caps don't allow it, or
    if another process has done so. What is replaced may still be the one that is mined."""
    old = nonces.unsigned_of(stuck)
    caps = caps_of(account.network_id)
    fees = raised(old.fees, now, caps)
    if fees is None:
        broadcast.waits(stuck, f"stuck; the cap is {in_gwei(caps.max_fee)} gwei")
        return None
    signer = _signer_of(account)
    if signer is None:
        return None
    with maintenance.recording(), maintenance.writing():
        nonces.lock(account)
        of_nonce = Sending.objects.filter(
            network_id=account.network_id, account=account.address, nonce=stuck.nonce
        )
        newest = of_nonce.order_by("id").last()
        if newest is None or newest.id != stuck.id or newest.state not in _WAITING:
            return None
        row = sign_and_store(account, signer, old.with_fees(fees), stuck.purpose)
        of_nonce.filter(id=stuck.id, state__in=_WAITING).update(state=nonces.REPLACED)
        link(row.hash, of_nonce.exclude(id=row.id).values_list("hash", flat=True))
    log.info("transaction replaced", network=account.network_id, old=stuck.hash, new=row.hash)
    return row


def fill(account: nonces.Account, nonce: int, gas: int, fees: Fees) -> Sending | None:
    """Use up a nonce that was left out, so that those behind it get on: nothing is sent to the
    account itself. None if another process has taken it."""
    signer = _signer_of(account)
    if signer is None:
        return None
    unsigned = Unsigned(account.network_id, nonce, account.address, 0, "0x", gas, fees)
    with maintenance.recording(), maintenance.writing():
        nonces.lock(account)
        is_unknown = bool(nonces.unknown_nonces(account, nonce, nonce + 1))
        if not is_unknown and nonce not in nonces.free_nonces(account, nonce):
            return None
        row = sign_and_store(account, signer, unsigned, nonces.FILLER)
    log.info("nonce filled", network=account.network_id, account=account.address, nonce=nonce)
    return row


def _signer_of(account: nonces.Account) -> Signer | None:
    """The signer, if it still is this account's."""
    try:
        signer = usable_signer(account.network_id)
    except ServiceError as problem:
        log.warning("no signer", network=account.network_id, reason=problem.message)
        return None
    return signer if signer.address == account.address else None
