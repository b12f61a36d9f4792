"""The times of blocks, by headers and by logs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.core.blocks.times import times_of, undated, wire_time, wire_times
from chain.core.failures import TryAgain
from chain.core.node import Header, Log

NOW = 1_700_000_000
ISO = "2023-11-14T22:13:20.000Z"


def hash_of(block: int) -> str:
    return f"0x{block:064x}"


def header(block: int, time: int) -> Header:
    return Header(hex(block), hash_of(block), hash_of(block - 1), hex(time))


def log(block: int, time: Any = None) -> Log:
    return Log("0x01", [], "0x", hex(block), hash_of(block), hash_of(0), "0x0", "0x0", False, time)


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_networks_may_count_other_units_than_seconds(unit: int) -> None:
    assert wire_time(NOW * unit) == ISO


def test_parts_of_a_second_are_kept_up_to_milliseconds() -> None:
    assert wire_time(NOW * 1000 + 7) == "2023-11-14T22:13:20.007Z"
    assert wire_time(NOW * 10**9 + 7_999_999) == "2023-11-14T22:13:20.007Z"


@pytest.mark.parametrize("time", [0, -1, 2**63, 2**200])
def test_what_no_table_holds_is_no_time(time: int) -> None:
    assert wire_time(time) is None


@given(st.integers(1, 2**63 - 1))
def test_each_other_time_is_a_date_that_everyone_can_hold(time: int) -> None:
    text = wire_time(time)
    assert text is not None
    date = datetime.fromisoformat(text)
    assert datetime(1970, 1, 1, tzinfo=UTC) <= date < datetime(5139, 1, 1, tzinfo=UTC)


def test_a_log_has_the_time_of_its_header_or_the_one_that_it_names() -> None:
    logs = [log(1), log(2, hex(NOW + 1)), log(3, hex(NOW + 2)), log(4)]
    times = times_of(logs, [header(1, NOW), header(2, NOW + 1)])
    assert times == {hash_of(1): NOW, hash_of(2): NOW + 1, hash_of(3): NOW + 2}
    assert undated(logs, times) == {hash_of(4): 4}
    assert wire_times({hash_of(1): NOW, hash_of(5): 0}) == {hash_of(1): ISO}


@pytest.mark.parametrize(
    "value", [None, "", "0x", "0x0", "1700000000", "0xg", "-0x1", "0x" + "f" * 16, NOW, 1.5, "0x1 "]
)
def test_what_is_no_time_counts_as_missing(value: Any) -> None:
    assert times_of([log(1, value)]) == {}
    assert times_of([log(1, value)], [header(1, NOW)]) == {hash_of(1): NOW}


def test_a_header_without_a_time_leaves_it_to_the_logs() -> None:
    assert times_of([log(1, hex(NOW))], [header(1, 0)]) == {hash_of(1): NOW}
    assert times_of([log(1)], [header(1, 0)]) == {}


@pytest.mark.parametrize("headers", [[header(1, NOW)], []])
def test_another_second_than_that_of_the_block_is_a_contradiction(headers: list[Header]) -> None:
    with pytest.raises(TryAgain):
        times_of([log(1, hex(NOW)), log(1, hex(NOW + 1))], headers)


def test_the_same_second_in_another_unit_is_none() -> None:
    milliseconds = NOW * 1000 + 250
    assert times_of([log(1, hex(NOW))], [header(1, milliseconds)]) == {hash_of(1): milliseconds}


@pytest.mark.parametrize("value", [b'"0x1"', b"17", b"1.5", b"null", b'"soon"'])
def test_no_scalar_in_place_of_a_time_makes_an_answer_unreadable(value: bytes) -> None:
    text = msgspec.json.encode(log(1)).replace(
        b'"blockTimestamp":null', b'"blockTimestamp":%b' % value
    )
    assert msgspec.json.decode(text, type=Log).height == 1
