"""What differs between what is stored and what the chain says."""

from __future__ import annotations

from typing import Any

import msgspec

from chain.core.blocks.differences import Identity, compare, identity_of
from chain.core.blocks.events import EventRow


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
