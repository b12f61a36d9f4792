"""What is stored is compared with the chain again, and repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db.models import F

from chain.indexing.history.backfill import advance
from chain.indexing.repair import examination
from chain.indexing.repair.audits import audit
from chain.indexing.repair.examination import examine
from chain.indexing.repair.findings import Findings
from chain.indexing.repair.repairs import stored_events
from chain.models import ContractEvent, Coverage, Cursor, OutboxEntry, Recheck
from tests.chain.backfills import (
    change,
    keep_header,
    listen,
    network_of,
    not_final_above,
    on_chain,
    spam,
    stored,
)
from tests.evm.artefacts import Contract
from tests.evm.faults import gives, without_logs
from tests.evm.node import Node
from tests.evm.proxy import proxied
from tests.rest import Api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def gem(node: Node) -> Contract:
    """A contract with fifty events in ten blocks."""
    gem = node.deployed("Gem")
    for _ in range(10):
        spam(gem, 5)
    return gem


def counts(results: Findings | None) -> dict[str, int]:
    assert results is not None
    return {**results.counts, "mended": results.mended}


def outbox() -> list[tuple[str, int, Any]]:
    """What subscribers received: which log, with which arguments."""
    rows = OutboxEntry.objects.order_by("seq").values_list("op", "payload")
    message = [(op, json.loads(payload)) for op, payload in rows]
    return [(op, event["logIndex"], event["args"]) for op, event in message]


def read_all(node: Node, gem: Contract, url: str | None = None) -> int:
    network_id = network_of(node, url)
    listen(gem)
    advance(network_id)
    assert len(stored()) == 50
    Cursor.objects.update(audited=0)
    return network_id


def test_what_is_as_it_should_be_is_left_alone(node: Node, gem: Contract) -> None:
    network_id = read_all(node, gem)
    report = audit(network_id)
    assert counts(report) == {"missing": 0, "superfluous": 0, "different": 0, "mended": 0}
    assert report is not None
    assert (report.events, report.is_clean) == (50, True)
    cursor = Cursor.objects.get()
    assert cursor.audited == node.head
    assert cursor.audit["events"] == 50
    assert audit(network_id) is None


def test_what_was_written_by_hand_and_is_no_log_is_left_alone(
    node: Node, gem: Contract, master: Api
) -> None:
    network_id = read_all(node, gem)
    own = {"networkId": str(network_id), "blockNumber": node.head - 1, "eventName": "Own"}
    made = [
        master.make("ContractEvent", **own),
        master.make("ContractEvent", **own, address=gem.address),
    ]
    header = node.block(node.head - 1)
    place = {"logIndex": 900, "blockHash": header["hash"], "address": gem.address}
    master.make("ContractEvent", **own, **place)
    report = audit(network_id)
    assert report is not None
    assert report.counts == {"missing": 0, "superfluous": 0, "different": 0}
    assert report.unclear == [node.head - 1], "one that says that it is a log"
    remaining = ContractEvent.objects.filter(object_id__in=made, canonical=True, event_name="Own")
    assert remaining.count() == len(made)


def test_what_was_deleted_and_what_was_altered_is_mended(node: Node, gem: Contract) -> None:
    network_id = read_all(node, gem)
    first, second, third, fourth = ContractEvent.objects.order_by("block_number", "log_index")[:4]
    first.delete()
    ContractEvent.objects.filter(pk=second.pk).update(args={"tokenId": "17"})
    ContractEvent.objects.filter(pk=third.pk).update(canonical=False)
    other = "0x" + "11" * 20
    ContractEvent.objects.filter(pk=fourth.pk).update(address=other)
    invented = ContractEvent.objects.get(pk=fourth.pk)
    invented.pk, invented.log_index, invented.address = "invented00", 99, second.address
    invented.save(force_insert=True)
    report = audit(network_id)
    # The one with another address looks missing at first sight, and is different.
    assert counts(report) == {"missing": 2, "superfluous": 1, "different": 2, "mended": 5}
    assert stored() == on_chain(node)
    mended = ContractEvent.objects.get(pk=second.pk)
    assert mended.args == second.args
    assert ContractEvent.objects.get(pk=fourth.pk).address == fourth.address
    Cursor.objects.update(audited=0)
    assert counts(audit(network_id))["mended"] == 0
    # These blocks precede the contract's registration: subscribers never got them.
    assert outbox() == []


def test_subscribers_are_told_of_what_is_mended_in_blocks_that_they_were_told_of(
    node: Node, gem: Contract
) -> None:
    network_id = read_all(node, gem)
    Coverage.objects.update(followed_from=0)
    first, second, _ = ContractEvent.objects.order_by("block_number", "log_index")[:3]
    wrong = first.args | {"tokenId": "17"}
    ContractEvent.objects.filter(pk=first.pk).update(args=wrong)
    second.delete()
    assert counts(audit(network_id))["mended"] == 2
    assert outbox() == [
        ("removed", first.log_index, wrong),
        ("added", second.log_index, second.args),
        ("added", first.log_index, first.args),
    ]
    assert Cursor.objects.get().outbox == 3


@pytest.mark.slow
def test_a_provider_that_has_lost_its_logs_takes_nothing_away(node: Node, gem: Contract) -> None:
    with proxied(node) as proxy:
        network_id = read_all(node, gem, proxy.url)
        proxy.on("eth_getLogs", without_logs())
        proxy.on("eth_getBlockReceipts", gives(None))
        report = audit(network_id)
        assert report is not None
        assert len(report.unclear) == 10
        assert len(stored()) == 50
        # Also where the headers' filters say nothing.
        block = node.block(5) | {"logsBloom": "0x" + "0" * 512}
        proxy.on("eth_getBlockByNumber", gives(block))
        report = examine(network_id, 5, 5, repairing=True)
        assert report.unclear == [5]
        proxy.on("eth_getTransactionReceipt", gives(None))
        assert examine(network_id, 5, 5, repairing=True).unclear == [5]
    assert stored() == on_chain(node)


def test_blocks_that_are_not_clear_are_compared_again_by_the_next_audits(
    node: Node, gem: Contract
) -> None:
    with proxied(node) as proxy:
        network_id = read_all(node, gem, proxy.url)
        event = ContractEvent.objects.filter(block_number=5)[0]
        ContractEvent.objects.filter(pk=event.pk).update(args={"tokenId": "17"})
        proxy.on("eth_getBlockReceipts", gives(None))
        proxy.on("eth_getTransactionReceipt", gives(None))
        report = audit(network_id)
        assert report is not None
        assert 5 in report.unclear
        assert ContractEvent.objects.get(pk=event.pk).args == {"tokenId": "17"}
        [again] = Recheck.objects.all()
        assert again.next_block <= 5 <= again.last_block
        proxy.be_good()
        audit(network_id)
    assert ContractEvent.objects.get(pk=event.pk).args == event.args
    assert not Recheck.objects.exists()


def test_only_events_of_the_blocks_in_question_are_loaded(node: Node, gem: Contract) -> None:
    network_id = read_all(node, gem)
    heights = sorted({*ContractEvent.objects.values_list("block_number", flat=True)})
    chosen = [heights[0], heights[-1]]
    assert {stored_event.block_number for stored_event in stored_events(network_id, chosen)} == {
        *chosen
    }
    assert {
        stored_event.block_number for stored_event in stored_events(network_id, range(*chosen))
    } == {*heights[:-1]}
    assert stored_events(network_id, []) == {}


def test_blocks_that_are_not_final_are_compared_by_their_hashes(node: Node, gem: Contract) -> None:
    network_id = read_all(node, gem)
    not_final_above(network_id, node, 5)
    ContractEvent.objects.filter(block_number=8).delete()
    assert counts(examine(network_id, 0, node.head))["missing"] == 5
    assert examine(network_id, 0, node.head, repairing=True).mended == 5
    assert stored() == on_chain(node)


def test_only_what_has_been_read_is_compared(node: Node, gem: Contract) -> None:
    network_id = network_of(node)
    contract = listen(gem, start=5)
    advance(network_id)
    assert examine(network_id, 0, node.head).is_clean
    change(contract, start_block=0)
    assert examine(network_id, 0, node.head).is_clean
    other = node.deployed("Gem")
    spam(other, 3)
    keep_header(network_id, node.block())
    assert examine(network_id, 0, node.head).is_clean


def test_an_audit_goes_on_where_the_last_one_ended(node: Node, gem: Contract) -> None:
    network_id = read_all(node, gem)
    Cursor.objects.update(audited=F("number") - 2)
    ContractEvent.objects.all().delete()
    assert counts(audit(network_id))["missing"] == 10


def test_a_provider_that_does_not_answer_is_noted(node: Node, gem: Contract) -> None:
    with proxied(node) as proxy:
        network_id = read_all(node, gem, proxy.url)
        proxy.refuse()
        assert audit(network_id) is None
    cursor = Cursor.objects.get()
    assert cursor.audited == 0
    assert cursor.audit["trouble"]
    assert proxy.url not in str(cursor.audit)


def test_what_is_stored_is_compared_in_parts(
    node: Node, gem: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    network_id = read_all(node, gem)
    ContractEvent.objects.filter(block_number=9).delete()
    monkeypatch.setattr(examination, "_MOST", 7)
    observed: list[int] = []
    report = examine(network_id, 0, node.head, repairing=True, progress=observed.append)
    assert (report.events, report.mended) == (50, 5)
    assert len(observed) > 5
    assert stored() == on_chain(node)
