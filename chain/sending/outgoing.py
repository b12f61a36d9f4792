"""Sending: tried first, then signed and stored, then handed over and followed to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import transaction

from backend.kernel.errors import ScriptFailed, ServiceUnavailable
from backend.kernel.texts.redaction import mask_text
from backend.settings.conf import service_settings
from chain import monitor
from chain.core.abi.functions import revert_reason
from chain.core.failures import TryAgain
from chain.core.names import address_of
from chain.core.node import Node
from chain.core.transactions.broadcasts import Broadcast
from chain.core.transactions.encoding import Unsigned
from chain.core.transactions.fees import Caps, Fees, TooExpensive, cost, gas_limit
from chain.core.transactions.sightings import Sighting
from chain.models import Sending
from chain.rpc import contracts
from chain.rpc.contracts import Call, Reverted
from chain.sending import broadcast, nonces
from chain.sending.node_access import ask
from chain.sending.nonce_counts import believed
from chain.sending.signers import CannotSign, Signer, signer_for
from objects.database import hold, maintenance

AT_ONCE: Final = timedelta(seconds=20)
"""How long a stored transaction belongs to the call that has stored it: no other process
broadcasts it meanwhile, so what the network says to that call is all that it has said."""


@dataclass(frozen=True, slots=True)
class _Quote:
    nonce: int
    gas: int
    fees: Fees


def send(
    network_id: int,
    to: str,
    data: str,
    *,
    purpose: str,
    value: int = 0,
    abis: Iterable[Any] = (),
    instead: Callable[[], str | None] = lambda: None,
) -> str:
    """Send a transaction by the network's signer; its hash. It is followed from then on.

    It is tried first: a contract that refuses it is ``ScriptFailed`` (141) with its reason, read by
    its errors in ``abis``, and nothing is sent; so with what the account can't pay and what costs
    more than the caps. ``instead`` is called while no other process can send from the account: the
    hash of a transaction that does the same makes this one superfluous.

    A transaction whose hash is returned stays the service's to bring into the chain, even if
    this process dies; an error means that it will not be executed. Raises
    ``ServiceUnavailable`` if the network or the signer doesn't answer.
    """
    maintenance.check()
    signer = usable_signer(network_id)
    call = Call(to, data, signer.address, value)
    account = nonces.Account(network_id, signer.address)
    first_nonce = nonces.fresh_nonce(account)
    quote = ask(network_id, lambda node: _quoted(node, network_id, call, abis, first_nonce))
    on_chain = believed(account, first_nonce, quote.nonce)
    with maintenance.writing():
        fresh = nonces.lock(account)
        same = instead()
        if same is not None:
            return same
        nonce = nonces.take(account, fresh, on_chain)
        unsigned = Unsigned(network_id, nonce, to, value, data, quote.gas, quote.fees)
        row = sign_and_store(account, signer, unsigned, purpose)
    if transaction.get_connection().in_atomic_block:
        # Part of something larger: only what is committed may be handed over.
        transaction.on_commit(lambda: _first(row, is_heard=False), robust=True)
    else:
        _first(row, is_heard=True)
    return row.hash


def sign_and_store(
    account: nonces.Account, signer: Signer, unsigned: Unsigned, purpose: str
) -> Sending:
    """A row with the signed transaction, which is followed; part of the caller's transaction, which
    has the account's lock. ``ServiceUnavailable`` if the signer can't sign."""
    try:
        raw = signer.sign(unsigned)
    except CannotSign as problem:
        raise ServiceUnavailable(f"The signer can't sign: {problem}.") from None
    row = nonces.store(account, unsigned, raw, purpose)
    sighting = Sighting(unsigned.nonce, account.address, address_of(unsigned.to.lower()))
    monitor.start(account.network_id, row.hash, sighting)
    return row


def usable_signer(network_id: int) -> Signer:
    """The network's signer. ``ScriptFailed`` if there is none, ``ServiceUnavailable`` if it can't
    be used, ``Held`` in a restored instance: its account may be another one's as well."""
    hold.check("transactions")
    try:
        signer = signer_for(network_id)
        _ = signer.address
    except CannotSign as problem:
        raise ServiceUnavailable(f"The signer can't be used: {problem}.") from None
    return signer


def caps_of(network_id: int) -> Caps:
    """What may be paid on a network."""
    most, tips = service_settings.MAX_FEE_GWEI, service_settings.MAX_PRIORITY_FEE_GWEI
    return Caps(most.get(network_id, most[None]), tips.get(network_id, tips[None]))


def _quoted(
    node: Node, network_id: int, call: Call, abis: Iterable[Any], nonce: int | None
) -> _Quote:
    try:
        quote = contracts.quote(node, call)
    except Reverted as refusal:
        reason = revert_reason(refusal.data, abis, refusal.message)
        raise ScriptFailed(f"The contract refuses: {reason}") from None
    try:
        offer = quote.prices.offer(caps_of(network_id))
    except TooExpensive as problem:
        raise ScriptFailed(f"Nothing was sent: {problem}.") from None
    if quote.nonce > max(quote.used, nonce or 0) + nonces.WIDEST:
        raise TryAgain("a nonce that the account can't have yet")
    gas = gas_limit(quote.gas, quote.prices.gas_limit)
    if quote.balance < cost(gas, offer, call.value):
        raise ScriptFailed(f"Nothing was sent: the account {call.sender} hasn't enough to pay it.")
    return _Quote(quote.nonce, gas, offer)


def _first(row: Sending, *, is_heard: bool) -> None:
    """Hand it over for the first time. Raises ``ScriptFailed`` if it is certain that it will never
    be executed and ``is_heard``."""
    meaning, text = broadcast.hand_over(row)
    text = mask_text(text)
    if meaning is Broadcast.TAKEN:
        broadcast.taken(row)
        return
    problem = f"Network {row.network_id} refuses the transaction: {text}"
    if meaning is Broadcast.NONCE_USED:
        problem = (
            f"The account {row.account} was used elsewhere at the same moment, so nothing was"
            " done. Try again."
        )
    state = _ENDS.get(meaning)
    if state is None or not broadcast.ended(row, state, text, if_younger=AT_ONCE):
        broadcast.waits(row, text)
    elif is_heard:
        raise ScriptFailed(problem)


_ENDS: Final = {Broadcast.IMPOSSIBLE: nonces.REFUSED, Broadcast.NONCE_USED: nonces.LOST}
