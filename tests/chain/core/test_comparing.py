"""What differs between what is stored and what the chain says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chain.core.blocks.differences import Identity, compare, identity_of
from chain.core.blocks.events import EventRow
from chain.core.columns import Column, Columns

VALUES: dict[str, tuple[Any, Any]] = {
    "text": ("text", "other"),
    "bigint": (1, 2),
    "int": (1, 2),
    "boolean": (True, False),
    "jsonb": ('{"a":1}', '{"a":2}'),
    "timestamptz": ("2019", "2020"),
}
"""Two values of each type of column."""
COLUMNS = Columns.of(EventRow)
COMPLETE = EventRow(**{column.name: VALUES[column.sql_type][0] for column in COLUMNS})
"""An event without nulls."""


def row(block: int, index: int = 0, **changed: Any) -> EventRow:
    values = {
        "contract_name": "Gem",
        "event_name": "Transfer",
        "address": "0x01",
        "transaction_hash": f"0x{block:x}",
        "block_number": block,
        "block_hash": f"0xb{block:x}",
        "log_index": index,
        "transaction_index": 0,
        "ordinal": index,
        "args": '{"to":"0x02","tokenId":"1"}',
    }
    return EventRow(**values | changed)


def stored(*rows: EventRow) -> dict[Identity, EventRow]:
    return {identity_of(item): item for item in rows}


def test_what_is_stored_as_it_is_does_not_differ() -> None:
    assert not compare(stored(row(1), row(2)), [row(1), row(2)])


def test_the_order_of_keys_and_the_name_of_the_contract_do_not_count() -> None:
    other = row(1, args='{"tokenId": "1", "to": "0x02"}', contract_name="Old")
    assert not compare(stored(other), [row(1)])


def test_what_is_missing_superfluous_and_different_is_reported() -> None:
    orphan = msgspec.structs.replace(row(3), block_hash="0xother")
    differences = compare(
        stored(row(1), row(2, args="{}"), orphan), [row(1), row(2), row(3), row(4)]
    )
    assert differences.missing == [row(3), row(4)]
    assert differences.superfluous == [(3, 0, "0xother")]
    assert differences.different == [row(2)]
    assert differences.blocks() == [2, 3, 4]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_each_column_is_compared_as_it_is_declared(column: Column) -> None:
    other = msgspec.structs.replace(COMPLETE, **{column.name: VALUES[column.sql_type][1]})
    differences = compare(stored(other), [COMPLETE])
    if column.is_identity:
        assert differences.missing == [COMPLETE]
        assert differences.superfluous == [identity_of(other)]
    else:
        assert differences.different == ([COMPLETE] if column.is_compared else [])


def test_the_name_of_the_contract_is_not_compared() -> None:
    assert "contract_name" in [column.name for column in COLUMNS if not column.is_compared]


@pytest.mark.parametrize(
    "column",
    [column for column in COLUMNS if column.is_compared and not column.is_identity],
    ids=lambda column: column.name,
)
def test_only_a_value_that_may_be_unknown_may_be_missing(column: Column) -> None:
    unknown = msgspec.structs.replace(COMPLETE, **{column.name: None})
    assert bool(compare(stored(unknown), [COMPLETE])) is not column.keeps_known
    assert bool(compare(stored(COMPLETE), [unknown])) is not column.keeps_known
