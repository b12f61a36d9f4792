"""Entries of the outbox: earlier entries of the same log, and their numbers."""

from __future__ import annotations

import pytest

from chain.indexing.storage import outbox_reader
from chain.indexing.storage.events import remove_events, store_events
from chain.models import Cursor, OutboxEntry
from objects.database.statements import fetch
from tests.chain.test_storing import ADDRESS, NETWORK, row

pytestmark = pytest.mark.django_db

OTHER = 31338
SENT = "0x" + "ab" * 32


def before(after: int = 0) -> list[tuple[str, int | None, int | None, int | None]]:
    rows = outbox_reader.rows_after({NETWORK: after}, 100)
    return [(item.op, item.again_of, item.announced, item.gone) for item in rows]


def log(block: int, fork: str = "a", index: int = 0, **changed: object) -> object:
    """The same log of the same transaction, wherever it is."""
    return row(block, index, fork, transaction_hash=SENT, **changed)


def test_rows_come_by_network_and_number(db: None) -> None:
    store_events(NETWORK, [row(n) for n in range(1, 6)], after_seq=0)
    store_events(OTHER, [row(n) for n in range(1, 4)], after_seq=0)
    rows = outbox_reader.rows_after({NETWORK: 1, OTHER: 0}, 3)
    assert [(item.network_id, item.seq) for item in rows] == [
        *((NETWORK, seq) for seq in (2, 3, 4)),
        *((OTHER, seq) for seq in (1, 2, 3)),
    ]
    assert outbox_reader.rows_after({}, 3) == []
    assert outbox_reader.rows_after({NETWORK: 5}, 3) == []


def test_what_is_reported_the_first_time_has_nothing_before() -> None:
    store_events(NETWORK, [row(1), row(2)], after_seq=0)
    assert before() == [("added", None, None, None)] * 2


def test_what_comes_back_names_where_it_was_reported() -> None:
    store_events(NETWORK, [log(1)], after_seq=0)
    remove_events(NETWORK, 0, after_seq=1)
    store_events(NETWORK, [log(2, "b", 3)], after_seq=2)
    remove_events(NETWORK, 0, after_seq=3)
    store_events(NETWORK, [log(1)], after_seq=4)
    assert before() == [
        ("added", None, None, None),
        ("removed", 1, 1, None),
        ("added", 1, None, 2),
        ("removed", 3, 3, 2),
        ("added", 3, 1, 4),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"args": '{"tokenId":"2"}'},
        {"event_name": "Minted"},
        {"event_name": None},
        {"ordinal": 1},
        {"address": ADDRESS.replace("5", "6")},
    ],
)
def test_what_comes_back_as_something_else_is_not_told_again(changed: dict[str, object]) -> None:
    store_events(NETWORK, [log(1)], after_seq=0)
    remove_events(NETWORK, 0, after_seq=1)
    store_events(NETWORK, [log(2, "b", **changed)], after_seq=2)
    assert before(2)[0][1] is None


def test_the_order_of_arguments_makes_nothing_else_of_an_event() -> None:
    store_events(NETWORK, [log(1, args='{"tokenId":"1","from":"a"}')], after_seq=0)
    remove_events(NETWORK, 0, after_seq=1)
    store_events(NETWORK, [log(2, "b", args='{"from":"a", "tokenId":"1"}')], after_seq=2)
    assert before(2) == [("added", 1, None, 2)]


def test_networks_with_the_same_transactions_are_distinguished() -> None:
    store_events(OTHER, [log(1)], after_seq=0)
    store_events(NETWORK, [log(1)], after_seq=0)
    assert before() == [("added", None, None, None)]


def test_what_was_history_was_never_reported() -> None:
    store_events(NETWORK, [log(1)], after_seq=None)
    remove_events(NETWORK, 0, after_seq=0)
    store_events(NETWORK, [log(2, "b")], after_seq=1)
    assert before() == [("removed", None, None, None), ("added", None, None, 1)]


def test_the_state_says_which_rows_there_are() -> None:
    Cursor.objects.create(network_id=NETWORK, outbox=5)
    Cursor.objects.create(network_id=OTHER)
    store_events(NETWORK, [row(n) for n in range(1, 6)], after_seq=0)
    OutboxEntry.objects.filter(network_id=NETWORK, seq__lt=3).delete()
    assert outbox_reader.state().networks == {NETWORK: (3, 5), OTHER: (1, 0)}


def test_a_restored_database_has_another_epoch() -> None:
    from backend.operations.backup.tables import settling

    fetch("DELETE FROM chain_outbox_epoch RETURNING 1", (), prepare=False)
    assert outbox_reader.state() == outbox_reader.State("none", {})
    fetch(
        "INSERT INTO chain_outbox_epoch VALUES (gen_random_uuid()) RETURNING 1", (), prepare=False
    )
    first = outbox_reader.state().epoch
    assert outbox_reader.state().epoch == first
    statements = settling("public", {"chain_outbox_epoch": 1}, is_held=False)
    (renewal,) = (each for each in statements if each.startswith("UPDATE"))
    fetch(f"{renewal} RETURNING 1", (), prepare=False)
    assert outbox_reader.state().epoch not in (first, "none")
