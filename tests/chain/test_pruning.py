"""Pruning removes what is no longer needed, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from chain.core.blocks.events import EventRow
from chain.indexing.storage.events import store_events
from chain.indexing.storage.retention import HEADERS_BELOW_FINAL, prune
from chain.models import Backfill, Block, ContractEvent, Cursor, OutboxEntry, Sending
from objects.database import maintenance

pytestmark = pytest.mark.django_db

NETWORK, FINAL = 5, 1000
ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


@pytest.fixture(autouse=True)
def cursor() -> None:
    Cursor.objects.create(network_id=NETWORK, number=FINAL + 5, finalized=FINAL, outbox=3)


def block(number: int, fork: str = "a") -> None:
    Block.objects.create(
        network_id=NETWORK,
        hash=f"0x{fork}{number:063x}",
        number=number,
        parent_hash="0x",
        timestamp=0,
        canonical=fork == "a",
    )


def event(number: int, fork: str) -> None:
    row = EventRow(
        *("Gem", "Transfer", ADDRESS, "0x01", number, f"0x{fork}{number:063x}", 0, 0, 0, "{}")
    )
    store_events(NETWORK, [row], after_seq=None)
    if fork != "a":
        ContractEvent.objects.filter(block_hash=row.block_hash).update(canonical=False)


def add_outbox_entry(seq: int, days: float) -> None:
    OutboxEntry.objects.create(
        network_id=NETWORK,
        seq=seq,
        op="added",
        event_id="x",
        payload="{}",
        created_at=timezone.now() - timedelta(days=days),
    )


def test_headers_far_below_what_is_final_go() -> None:
    least = FINAL - HEADERS_BELOW_FINAL
    for number in (least - 1, least, FINAL + 1):
        block(number)
    block(least - 1, "b")
    assert prune()["chain_block"] == 2
    assert sorted(Block.objects.values_list("number", flat=True)) == [least, FINAL + 1]


def test_removed_events_go_when_their_height_is_final_and_read() -> None:
    for number in (FINAL - 1, FINAL, FINAL + 1):
        event(number, "a")
        event(number, "b")
    Cursor.objects.update(number=FINAL - 1)
    assert prune()["chain_contract_event"] == 1
    Cursor.objects.update(number=FINAL + 5)
    assert prune()["chain_contract_event"] == 1
    left = ContractEvent.objects.filter(canonical=False)
    assert [*left.values_list("block_number", flat=True)] == [FINAL + 1]
    assert ContractEvent.objects.filter(canonical=True).count() == 3


def test_the_outbox_is_kept_for_some_time_and_its_newest_row_for_ever() -> None:
    for seq, days in ((1, 40), (2, 29), (3, 28)):
        add_outbox_entry(seq, days)
    assert prune()["chain_outbox"] == 1
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(days=400))
    assert prune()["chain_outbox"] == 1
    assert [*OutboxEntry.objects.values_list("seq", flat=True)] == [3]


def test_backfills_that_were_over_long_ago_go() -> None:
    ago = timezone.now() - timedelta(days=91)
    for done_at in (None, timezone.now(), ago):
        Backfill.objects.create(
            network_id=NETWORK,
            address=ADDRESS,
            first_block=0,
            next_block=0,
            last_block=9,
            done_at=done_at,
        )
    assert prune()["chain_backfill"] == 1
    assert not Backfill.objects.filter(done_at=ago).exists()


def test_a_halted_network_keeps_everything() -> None:
    block(1)
    event(1, "b")
    add_outbox_entry(1, 400)
    Cursor.objects.update(halted="look at this")
    assert not any(prune().values())


def test_nothing_goes_while_the_chain_is_paused() -> None:
    block(1)
    with maintenance.own_records():
        from objects.database.statements import fetch

        fetch(
            "INSERT INTO objects_maintenance (id, message, since, chain_paused)"
            " VALUES (1, 'paused', statement_timestamp(), true)",
            (),
            prepare=False,
        )
    assert prune() == {}
    assert Block.objects.count() == 1


def test_what_was_sent_long_ago_goes_when_a_later_nonce_is_final() -> None:
    def sent(nonce: int, state: str, days: float, account: str = ADDRESS) -> None:
        row = Sending.objects.create(
            network_id=NETWORK,
            account=account,
            nonce=nonce,
            hash=f"{account}{nonce}{state}",
            raw="0x",
            gas=1,
            max_fee="1",
            state=state,
        )
        Sending.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days))

    for nonce, state in ((1, "final"), (1, "replaced"), (2, "refused"), (3, "lost"), (4, "final")):
        sent(nonce, state, 100)
    sent(2, "final", 80)
    sent(3, "mined", 100)
    for nonce, state in ((5, "refused"), (6, "sent"), (7, "lost")):
        sent(nonce, state, 100)
    sent(1, "refused", 100, account="another")
    assert prune()["chain_sending"] == 4
    left = Sending.objects.filter(account=ADDRESS).order_by("nonce")
    assert [*left.values_list("nonce", "state")] == [
        *((2, "final"), (3, "mined"), (4, "final"), (5, "refused"), (6, "sent"), (7, "lost")),
    ]
    assert Sending.objects.filter(account="another").exists()
