"""What of a node's answers fits together, and which logs must be missing."""

from __future__ import annotations

from typing import Any

import pytest
from eth_utils import keccak

from chain.core.blocks import bloom, consistency
from chain.core.failures import EmptyPromise, Moved, TryAgain
from chain.core.node import Header, Log, LogFilter

ADDRESS = "0x" + "ab" * 20
OTHER = "0x" + "cd" * 20
TRANSFER = "0x" + keccak(text="Transfer(address,address,uint256)").hex()


def header(number: int, *, parent: str | None = None, **more: Any) -> Header:
    named = {"hash": f"0x{number}", "parent_hash": parent or f"0x{number - 1}"}
    return Header(number=hex(number), **{**named, **more})


def log(height: int, index: int, **more: Any) -> Log:
    fields = {
        "address": ADDRESS,
        "topics": [TRANSFER],
        "data": "0x",
        "block_number": hex(height),
        "block_hash": f"0x{height}",
        "transaction_hash": "0x77",
        "transaction_index": "0x0",
        "log_index": hex(index),
    }
    return Log(**{**fields, **more})


def test_headers_that_follow_each_other_are_a_chain() -> None:
    headers = [header(6), header(7)]
    assert consistency.chained(5, "0x5", headers) == headers


@pytest.mark.parametrize(
    "headers",
    [
        [header(6, parent="0xother")],
        [header(6), header(7, parent="0xother")],
        [header(7, parent="0x5")],
    ],
)
def test_others_are_dropped(headers: list[Header]) -> None:
    with pytest.raises(Moved):
        consistency.chained(5, "0x5", headers)


def test_a_block_that_the_node_has_named_and_lacks_is_an_empty_promise() -> None:
    with pytest.raises(EmptyPromise):
        consistency.chained(5, "0x5", [header(6), None])


def test_a_number_that_is_none_is_no_answer() -> None:
    with pytest.raises(TryAgain):
        consistency.chained(5, "0x5", [Header(number="six", hash="0x6", parent_hash="0x5")])
    with pytest.raises(TryAgain):
        consistency.belonging([log(6, 0, log_index="first")], [header(6)])


def test_logs_are_sorted_and_each_is_there_once() -> None:
    logs = consistency.belonging(
        [log(7, 1), log(6, 3), log(7, 1), log(7, 0)], [header(6), header(7)]
    )
    assert [(item.height, item.index) for item in logs] == [(6, 3), (7, 0), (7, 1)]


@pytest.mark.parametrize(
    "bad",
    [
        log(8, 0),
        log(7, 0, block_hash="0x6"),
        log(7, 0, block_hash="0xother"),
        log(7, 0, removed=True),
        log(7, 2, data="0x01"),
    ],
)
def test_logs_that_belong_elsewhere_are_dropped(bad: Log) -> None:
    with pytest.raises(Moved):
        consistency.belonging([log(7, 2), bad], [header(6), header(7)])
    with pytest.raises(Moved):
        consistency.within([log(7, 2), bad], 6, header(7))


def test_final_logs_are_of_one_block_at_each_height() -> None:
    assert len(consistency.within([log(5, 0), log(6, 0), log(7, 0)], 5, header(7))) == 3
    with pytest.raises(Moved):
        consistency.within([log(5, 0), log(5, 1, block_hash="0xother")], 5, header(7))
    with pytest.raises(Moved):
        consistency.within([log(4, 0)], 5, header(7))


def test_a_filter_names_the_contracts_that_logged() -> None:
    item = header(6, logs_bloom=hex(bloom.bloom_of([log(6, 0)])))
    assert bloom.Watch(LogFilter(addresses=(ADDRESS, OTHER))).named(item) == [ADDRESS]
    assert bloom.Watch(LogFilter(addresses=(OTHER,))).named(item) == []
    assert bloom.Watch(LogFilter((ADDRESS,), (TRANSFER,))).named(item) == [ADDRESS]
    assert bloom.Watch(LogFilter((ADDRESS,), ("0x" + "00" * 32,))).named(item) == []
    assert bloom.names_all(item, [log(6, 5)])
    assert not bloom.names_all(item, [log(6, 5), log(6, 0, address=OTHER)])
    assert not bloom.names_all(item, [log(6, 0, topics=["0x" + "00" * 32])])
    assert not bloom.names_all(item, [log(6, 0, address="nonsense")])
    assert bloom.is_complete(item, [log(6, 0)])
    assert bloom.is_complete(item, [log(6, 0), log(6, 1, address=OTHER)])
    assert not bloom.is_complete(item, [log(6, 0, address=OTHER)])
    assert not bloom.is_complete(item, [])
    assert not bloom.is_complete(item, [log(6, 0, address="nonsense")])


@pytest.mark.parametrize("bits", ["0x", "0x0", ""], ids=["no digits", "zero", "nothing"])
def test_an_empty_filter_names_nothing(bits: str) -> None:
    watch = bloom.Watch(LogFilter(addresses=(ADDRESS,)))
    assert watch.named(header(6, logs_bloom=bits)) == []
    assert watch.chance(header(6, logs_bloom=bits)) == 0


def test_a_full_filter_names_everything_by_coincidence() -> None:
    full = header(6, logs_bloom="0x" + "ff" * 256)
    assert bloom.Watch(LogFilter(addresses=(ADDRESS,))).chance(full) == 1
    assert bloom.Watch(LogFilter((ADDRESS, OTHER), (TRANSFER,))).chance(full) == 1
    half = header(6, logs_bloom="0x" + "55" * 256)
    assert bloom.Watch(LogFilter((ADDRESS,))).chance(half) == 1 / 8
    assert bloom.Watch(LogFilter((ADDRESS, OTHER), (TRANSFER,))).chance(half) == 2 / 64
