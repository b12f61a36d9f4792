"""Addresses, hashes and networks have one form each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from eth_utils import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from chain.core.names import address_of, checksummed, hash_of, network_of, whole_number

ANN = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


@given(st.binary(min_size=20, max_size=20))
def test_checksums_are_those_of_others(raw: bytes) -> None:
    address = "0x" + raw.hex()
    assert checksummed(address) == to_checksum_address(address)


def test_an_address_is_taken_in_one_case_or_with_its_checksum() -> None:
    for spelling in (ANN, ANN.lower(), "0x" + ANN[2:].upper()):
        assert address_of(spelling) == ANN


@pytest.mark.parametrize(
    "value", [None, 1, "", "0x", ANN[2:], ANN + "0", ANN.swapcase(), "0x" + "g" * 40]
)
def test_what_is_no_address_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="expected an address"):
        address_of(value)


@pytest.mark.parametrize("value", [None, 5, "0x" + "ab" * 31, "ab" * 32, "0x" + "zz" * 32])
def test_what_is_no_hash_is_refused(value: Any) -> None:
    assert hash_of("0x" + "AB" * 32) == "0x" + "ab" * 32
    with pytest.raises(ValueError, match="expected a hash"):
        hash_of(value)


@pytest.mark.parametrize(
    "value", [None, True, 0, -1, 1.5, 2**53, "", "0", "01", "1e3", "x", float("inf"), float("nan")]
)
def test_what_is_no_network_is_refused(value: Any) -> None:
    assert network_of("31337") == network_of(31337) == network_of(31337.0) == 31337
    with pytest.raises(ValueError, match="expected the id of a network"):
        network_of(value)


@pytest.mark.parametrize("read", [network_of, whole_number])
def test_numbers_are_read_as_javascript_writes_them(read: Callable[[Any], int]) -> None:
    for value, number in [(5, 5), (5.0, 5), (2**53 - 1, 2**53 - 1), (1e3, 1000)]:
        parsed = read(value)
        assert (parsed, type(parsed)) == (number, int)
    for value in (5.5, -1, 2**53, float("inf"), float("nan"), True, None, "x", [5]):
        with pytest.raises(ValueError, match="expected"):
            read(value)
