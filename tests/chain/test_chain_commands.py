"""Operators see how networks are, and have their past read, compared and decoded again."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chain.indexing.history.backfill import advance
from chain.models import Backfill, ContractEvent, Cursor, OutboxEntry, SmartContract
from objects.database import maintenance
from tests.chain.backfills import change, listen, network_of, on_chain, spam, stored
from tests.evm.artefacts import Contract, artefact
from tests.evm.faults import range_limit
from tests.evm.node import Node
from tests.evm.proxy import proxied

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def gem(node: Node) -> Contract:
    gem = node.deployed("Gem")
    for _ in range(4):
        spam(gem, 5)
    return gem


def run(name: str, *arguments: Any) -> str:
    out = StringIO()
    call_command(name, *map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def run_json(name: str, *arguments: Any) -> Any:
    return json.loads(run(name, *arguments, "--json"))


# -- chain_status ----------------------------------------------------------------------------------


def test_status_says_how_each_network_is(node: Node, gem: Contract) -> None:
    assert "No networks" in run("chain_status")
    network_id = network_of(node)
    listen(gem)
    Cursor.objects.update(head=node.head + 3, halted="another chain", trouble="no answer")
    call_command("chain_backfill", str(network_id), stdout=StringIO())
    [network] = run_json("chain_status")["networks"]
    assert (network["networkId"], network["checkpoint"], network["lag"]) == (
        network_id,
        node.head,
        3,
    )
    assert network["contracts"] == {"registered": 1, "listening": 1}
    assert network["transactions"] == {"pending": 0, "stalled": 0, "oldestPending": None}
    assert [row["contract"] for row in network["backfills"]] == ["Gem"]
    assert [provider["source"] for provider in network["providers"]] == ["public"]
    text = run("chain_status", network_id)
    for word in ("HALTED", "another chain", "no answer", "3 blocks behind", "Gem 0-"):
        assert word in text


def test_status_never_shows_where_a_provider_is(node: Node, gem: Contract) -> None:
    with proxied(node) as proxy:
        network_id = network_of(node, f"{proxy.url}/v3/secret-key")
        listen(gem)
        proxy.refuse()
        advance(network_id)
        assert Backfill.objects.get().trouble
        for text in (run("chain_status"), json.dumps(run_json("chain_status"))):
            assert "secret" not in text
            assert str(proxy.port) not in text


def test_status_of_an_unknown_network_is_refused() -> None:
    with pytest.raises(CommandError, match="There is no network 7"):
        run("chain_status", 7)


# -- chain_backfill --------------------------------------------------------------------------------


def test_what_is_missing_is_read_while_one_waits(node: Node, gem: Contract) -> None:
    network_id = network_of(node)
    listen(gem)
    assert "21 events" not in run("chain_backfill", network_id)
    assert stored() == []
    [row] = run_json("chain_backfill", network_id, "--wait")["backfills"]
    assert (row["done"], row["events"], row["to"]) == (True, 20, node.head)
    assert stored() == on_chain(node)
    assert run("chain_backfill", network_id, "--wait") == "Nothing is missing.\n"


def test_blocks_are_read_again_on_request(node: Node, gem: Contract) -> None:
    network_id = network_of(node)
    listen(gem)
    run("chain_backfill", network_id, "--wait")
    ids = set(ContractEvent.objects.values_list("pk", flat=True))
    gone = ContractEvent.objects.filter(block_number=3)
    gone.delete()
    assert run("chain_backfill", network_id) == "Nothing is missing.\n"
    run("chain_backfill", network_id, "--contract", "Gem", "--from", 2, "--to", 3, "--wait")
    assert stored() == on_chain(node)
    assert len(ids & set(ContractEvent.objects.values_list("pk", flat=True))) == 15


def test_a_backfill_that_takes_too_long_is_left_to_the_workers(node: Node, gem: Contract) -> None:
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        listen(gem)
        proxy.refuse()
        with pytest.raises(CommandError, match=r"Not done after 0\.2 s"):
            run("chain_backfill", network_id, "--wait", "--timeout", 0.2)
    assert Backfill.objects.filter(done_at=None).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--contract", "Nobody"], "--contract Nobody: not registered"),
        (["--contract", "0x12"], "--contract 0x12: expected an address"),
        (["--contract", "Deaf"], "--contract Deaf: not listened to"),
        (["--from", "9", "--to", "3"], "--from, --to: no blocks from 9 to 3"),
        (["--from", "-1"], "--from, --to: no blocks from -1"),
    ],
)
def test_what_makes_no_sense_is_refused(
    node: Node, gem: Contract, arguments: list[str], message: str
) -> None:
    network_id = network_of(node)
    change(listen(gem, name="Deaf"), listening=False)
    with pytest.raises(CommandError, match=message):
        run("chain_backfill", network_id, *arguments)


def test_a_network_that_has_not_answered_yet_is_refused(node: Node) -> None:
    network_id = network_of(node)
    Cursor.objects.all().delete()
    for command in ("chain_backfill", "chain_verify", "chain_reindex"):
        with pytest.raises(CommandError, match="has not answered yet"):
            run(command, network_id)
        with pytest.raises(CommandError, match="There is no network 7"):
            run(command, 7)


# -- chain_verify ----------------------------------------------------------------------------------


def test_verify_finds_and_mends_what_was_deleted_or_altered(node: Node, gem: Contract) -> None:
    network_id = network_of(node)
    listen(gem)
    run("chain_backfill", network_id, "--wait")
    assert "20 events" in run("chain_verify", network_id)
    first, second = ContractEvent.objects.order_by("block_number", "log_index")[:2]
    first.delete()
    ContractEvent.objects.filter(pk=second.pk).update(event_name="Invented")
    out = StringIO()
    with pytest.raises(CommandError, match="--repair corrects them"):
        call_command("chain_verify", str(network_id), "--json", stdout=out)
    document = json.loads(out.getvalue())
    assert (document["missing"], document["different"], document["mended"]) == (1, 1, 0)
    assert document["examples"]["missing"] == [[2, 0, first.transaction_hash]]
    assert run_json("chain_verify", network_id, "--from", 3)["events"] == 15
    assert run_json("chain_verify", network_id, "--repair")["mended"] == 2
    assert run_json("chain_verify", network_id)["missing"] == 0
    assert ContractEvent.objects.get(pk=second.pk).event_name == second.event_name


def test_verify_reads_within_the_limits_of_the_provider(node: Node, gem: Contract) -> None:
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        listen(gem)
        run("chain_backfill", network_id, "--wait")
        proxy.on("eth_getLogs", range_limit("infura", 2))
        assert run_json("chain_verify", network_id)["events"] == 20


# -- chain_reindex ---------------------------------------------------------------------------------


def test_events_are_decoded_again_after_their_abi_was_corrected(node: Node, gem: Contract) -> None:
    network_id = network_of(node)
    contract = listen(gem)
    change(contract, abi=artefact("Gem").without("Transfer"))
    run("chain_backfill", network_id, "--wait")
    before = {row.pk: row for row in ContractEvent.objects.all()}
    assert {row.event_name for row in before.values()} == {None}
    change(contract, abi=artefact("Gem").abi)
    document = run_json("chain_reindex", network_id, "--contract", gem.address)
    assert (document["different"], document["mended"]) == (20, 20)
    after = {row.pk: row for row in ContractEvent.objects.all()}
    assert before.keys() == after.keys()
    assert {row.event_name for row in after.values()} == {"Transfer"}
    assert all("tokenId" in row.args for row in after.values())
    assert all(row.updated_at >= before[row.pk].updated_at for row in after.values())
    assert not OutboxEntry.objects.exists()
    assert run_json("chain_reindex", network_id)["mended"] == 0


# -- Maintenance mode ------------------------------------------------------------------------------


def test_all_of_it_waits_while_the_chain_is_paused(node: Node, gem: Contract) -> None:
    network_id = network_of(node)
    listen(gem)
    run("chain_backfill", network_id, "--wait")
    ContractEvent.objects.filter(block_number=3).delete()
    maintenance.on(pause_chain=True)
    try:
        assert "is paused" in run("chain_status")
        with pytest.raises(CommandError, match="read-only"):
            run("chain_backfill", network_id, "--from", 0)
        with pytest.raises(CommandError, match="read-only"):
            run("chain_verify", network_id, "--repair")
        with pytest.raises(CommandError, match="read-only"):
            run("chain_reindex", network_id)
        maintenance.on(pause_chain=False)
        run("chain_verify", network_id, "--repair")
    finally:
        maintenance.off()
    assert stored() == on_chain(node)
    assert SmartContract.objects.count() == 1
