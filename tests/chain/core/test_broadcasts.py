"""The answers of the usual nodes to a transaction that they are handed."""

from __future__ import annotations

import pytest

from chain.core.transactions.broadcasts import Broadcast, meaning_of

TEXTS = {
    Broadcast.TAKEN: (
        "already known",
        "AlreadyKnown",
        "Known transaction",
        "known transaction: 0x12",
        "ALREADY_EXISTS: already known",
        "Transaction with the same hash was already imported.",
        "transaction already in mempool",
    ),
    Broadcast.NONCE_USED: (
        "nonce too low",
        "nonce too low: next nonce 5, tx nonce 4",
        "OldNonce, Current nonce: 7, nonce of rejected tx: 6",
        "Transaction nonce is too low. Try incrementing the nonce.",
        "Nonce below current account nonce: 1",
        "the nonce has already been used",
    ),
    Broadcast.UNDERPRICED: (
        "replacement transaction underpriced",
        "transaction underpriced: gas tip cap 1, minimum needed 2",
        "INTERNAL_ERROR: could not replace existing tx",
        "replacement fee too low",
        "max fee per gas less than block base fee: address 0x12, maxFeePerGas: 1",
        "Transaction gas price supplied is too low.",
        "gas price below configured minimum gas price",
        "FeeTooLow, EffectivePriorityFeePerGas too low",
        "feecap too low: maxFeePerGas lower than base fee",
    ),
    Broadcast.IMPOSSIBLE: (
        "insufficient funds for gas * price + value",
        "Insufficient funds for gas * price + value: balance 0",
        "InsufficientFunds, Balance is 0 less than sending value + gas",
        "intrinsic gas too low",
        "exceeds block gas limit",
        "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)",
        "invalid sender",
        "invalid chain id for signer",
        "only replay-protected (EIP-155) transactions allowed over RPC",
        "transaction type not supported",
    ),
    Broadcast.UNCLEAR: ("something else", "txpool is full", "unknown", ""),
}


@pytest.mark.parametrize(
    ("text", "meaning"), [(text, meaning) for meaning, all_ in TEXTS.items() for text in all_]
)
def test_a_text_means(text: str, meaning: Broadcast) -> None:
    assert meaning_of(text) is meaning
