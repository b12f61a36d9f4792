"""Transactions in the bytes that networks take: the same as another library makes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain.core.transactions.encoding import Unsigned, encoded, hash_of_raw
from chain.core.transactions.fees import Fees
from chain.rpc.web3_library import eth_account
from chain.sending.signers.local import LocalSigner

KEY = bytes(range(1, 33))
WORD = st.integers(0, 2**256 - 1)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(
    chain_id=st.integers(1, 2**53 - 1),
    nonce=st.integers(0, 2**40),
    to=st.binary(min_size=20, max_size=20),
    value=WORD,
    data=st.binary(max_size=200),
    gas=st.integers(21_000, 2**40),
    max_fee=st.integers(0, 2**80),
    tip=st.none() | st.integers(0, 2**60),
)
def test_signed_bytes_are_those_of_eth_account(
    chain_id: int,
    nonce: int,
    to: bytes,
    value: int,
    data: bytes,
    gas: int,
    max_fee: int,
    tip: int | None,
) -> None:
    address = f"0x{to.hex()}"
    unsigned = Unsigned(chain_id, nonce, address, value, f"0x{data.hex()}", gas, Fees(max_fee, tip))
    fees = (
        {"gasPrice": max_fee}
        if tip is None
        else {"maxFeePerGas": max_fee, "maxPriorityFeePerGas": tip, "type": 2}
    )
    account = eth_account().Account
    theirs = account.sign_transaction(
        {
            "chainId": chain_id,
            "nonce": nonce,
            "to": to,
            "value": value,
            "data": data,
            "gas": gas,
            **fees,
        },
        KEY,
    )
    raw = LocalSigner(KEY).sign(unsigned)
    assert raw == bytes(theirs.raw_transaction)
    assert hash_of_raw(raw) == theirs.hash.to_0x_hex()
    assert account.recover_transaction(raw) == LocalSigner(KEY).address


@pytest.mark.parametrize(
    ("item", "bytes_"),
    [
        (0, "80"),
        (127, "7f"),
        (128, "8180"),
        (b"", "80"),
        (b"dog", "83646f67"),
        ([], "c0"),
        ([b"cat", b"dog"], "c88363617483646f67"),
        ([[], [[]]], "c3c0c1c0"),
        (b"a" * 56, "b838" + "61" * 56),
        (b"a" * 1024, "b90400" + "61" * 1024),
    ],
)
def test_lengths_are_before_what_they_count(item: object, bytes_: str) -> None:
    assert encoded(item).hex() == bytes_  # type: ignore[arg-type]
