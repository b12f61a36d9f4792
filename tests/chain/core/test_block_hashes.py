"""The hash of a block, computed from its header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chain.core.blocks.hashes import has_own_hash, hash_of
from chain.core.node import Header

EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
GENESIS: dict[str, Any] = {
    "number": "0x0",
    "hash": "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
    "parentHash": "0x" + "00" * 32,
    "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
    "miner": "0x" + "00" * 20,
    "stateRoot": "0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544",
    "transactionsRoot": EMPTY_ROOT,
    "receiptsRoot": EMPTY_ROOT,
    "logsBloom": "0x" + "00" * 256,
    "difficulty": "0x400000000",
    "gasLimit": "0x1388",
    "gasUsed": "0x0",
    "timestamp": "0x0",
    "extraData": "0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa",
    "mixHash": "0x" + "00" * 32,
    "nonce": "0x0000000000000042",
}
"""Block 0 of Ethereum."""


def header(**changed: Any) -> Header:
    return msgspec.convert({**GENESIS, **changed}, Header)


REAL: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "headers.json").read_bytes())
"""Blocks of real networks: of Ethereum of March 2026, Sepolia of January 2025, OP Mainnet of
October 2026."""


def test_the_first_block_of_ethereum_has_its_hash() -> None:
    assert has_own_hash(header())


@pytest.mark.parametrize("network", REAL)
def test_blocks_of_real_networks_have_their_hashes(network: str) -> None:
    assert has_own_hash(msgspec.convert(REAL[network], Header))


def test_fields_of_later_forks_follow_in_their_order() -> None:
    """EIP-7928 and EIP-7843. No block with them is at hand: what is tested is that they count."""
    before = REAL["ethereum"]
    with_list = {**before, "blockAccessListHash": "0x" + "11" * 32}
    with_slot = {**with_list, "slotNumber": "0xb1a2c3"}
    hashes = [hash_of(msgspec.convert(item, Header)) for item in (before, with_list, with_slot)]
    assert None not in hashes
    assert len({*hashes}) == 3
    assert hash_of(msgspec.convert({**before, "slotNumber": "0x1"}, Header)) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"logsBloom": "0x" + "00" * 255 + "01"},
        {"receiptsRoot": "0x" + "11" * 32},
        {"timestamp": "0x1"},
        {"number": "0x1"},
        {"parentHash": "0x" + "22" * 32},
        {"hash": "0x" + "33" * 32},
        {"baseFeePerGas": "0x7"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_changed_field_is_noticed(changed: dict[str, Any]) -> None:
    assert not has_own_hash(header(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"mixHash": None},
        {"nonce": 66},
        {"miner": "node"},
        {"extraData": "0x123"},
        {"extraData": "0xzz"},
        {"difficulty": "0x"},
        {"withdrawalsRoot": "0x" + "44" * 32},  # without the base fee, which came earlier
    ],
    ids=str,
)
def test_a_header_of_another_make_has_no_hash_that_can_be_computed(changed: dict[str, Any]) -> None:
    assert hash_of(header(**changed)) is None


@pytest.mark.parametrize("name", ["logsBloom", "extraData", "receiptsRoot"])
def test_bytes_with_spaces_between_them_are_malformed(name: str) -> None:
    """``bytes.fromhex`` skips them, and other readers don't."""
    text = GENESIS[name]
    assert hash_of(header(**{name: f"{text[:4]} {text[4:]}"})) is None
