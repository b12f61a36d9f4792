"""One provider lies about the newest blocks: what is stored, refused, repaired and noted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chain.core.node import Header
from chain.indexing.head import indexer
from chain.indexing.repair.audits import audit
from chain.indexing.verification import capabilities, evidence, hashes
from chain.models import Blockchain, ContractEvent, Cursor, Recheck
from chain.rpc import pool
from tests.chain.indexed_network import Network, network
from tests.chain.lying_network import contents, lied_to, truth
from tests.chain.rpc.networks import provider
from tests.evm.faults import altered, fails, gives
from tests.evm.liar import Kind, Lie
from tests.evm.node import Node
from tests.evm.proxy import proxied

pytestmark = pytest.mark.django_db

ABOUT_LOGS: tuple[Kind, ...] = ("drop", "invent", "change", "retopic", "reorder")


def grow(world: Network, blocks: int = 4) -> None:
    """Blocks with events whose arguments are in topics, in data, and in both."""
    for _ in range(blocks):
        world.gem.transact("spam", 2, gas=5_000_000)
        world.gem.transact("spamMinted", 2, 0, gas=5_000_000)
        world.node.mine()


def grow_in_data(world: Network, blocks: int = 4) -> None:
    """Blocks with events whose arguments are in data, of which filters say nothing."""
    for _ in range(blocks):
        world.gem.transact("spamMinted", 2, 0, gas=5_000_000)
        world.node.mine()


def check_all_of(settings: Any, percent: int = 100) -> None:
    """Compare the receipts of so many percent of the blocks."""
    settings.SERVICE = {**settings.SERVICE, "VERIFY_PERCENT": percent}


@pytest.mark.parametrize("kind", ABOUT_LOGS)
@pytest.mark.parametrize("blocks", [1, 4])
def test_where_every_block_is_checked_false_logs_are_replaced_by_those_of_the_receipts(
    node: Node, kind: Kind, blocks: int
) -> None:
    with lied_to(node, verify="all") as (world, liar):
        liar.lie(Lie(kind))
        grow(world, blocks)
        world.follow()
        assert liar.lies_about(kind)
        assert world.cursor.number == node.head
        assert contents(world) == truth(world)
        assert world.cursor.contradictions >= blocks
        assert "public" in str(world.cursor.contradiction)


@pytest.mark.parametrize("in_bloom", [False, True])
@pytest.mark.parametrize("kind", ABOUT_LOGS)
def test_where_every_block_is_checked_nothing_is_stored_of_what_receipts_lie_about_too(
    node: Node, kind: Kind, in_bloom: bool
) -> None:
    with lied_to(node, verify="all") as (world, liar):
        was = world.cursor.number
        liar.lie(Lie(kind, in_receipts=True, in_bloom=in_bloom))
        grow(world)
        world.follow()
        assert liar.lies_about(kind)
        assert contents(world) == truth(world)
        if kind != "reorder":  # which the place of a log in its receipt settles
            assert world.cursor.number == was
            assert "block" in str(world.cursor.trouble)
        liar.be_honest()
        world.follow()
        assert world.cursor.number == node.head
        assert contents(world) == truth(world)


# -- Hashes of headers ----------------------------------------------------------------------------


@pytest.mark.parametrize("verify", ["sample", "all"])
@pytest.mark.parametrize(
    "changed",
    [
        {"hash": "0x" + "77" * 32},
        {"timestamp": "0x77"},
        {"receiptsRoot": "0x" + "77" * 32},
        {"logsBloom": "0x" + "00" * 256},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_header_without_the_hash_that_it_states_is_refused(
    node: Node, verify: str, changed: dict[str, str]
) -> None:
    with lied_to(node, verify=verify) as (world, _):
        was = world.cursor.number
        world.proxy.be_good()
        world.proxy.on(
            "eth_getBlockByNumber", altered(lambda block: block and {**block, **changed})
        )
        grow(world, 1)
        world.follow()
        assert world.cursor.number == was
        world.proxy.be_good()
        world.follow()
        assert contents(world) == truth(world)
        world.check()


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_a_true_block_on_top_of_a_false_one_is_refused(node: Node, verify: str) -> None:
    with lied_to(node, verify=verify) as (world, liar):
        was = world.cursor
        node.mine(1)
        liar.lie(Lie("wrong hash", first=node.head, last=node.head))
        grow(world, 1)
        world.follow()
        assert world.cursor.number == was.number
        liar.be_honest()
        world.follow()
        world.check()


def test_headers_of_an_unknown_make_are_accepted_in_the_end_unless_every_block_is_checked(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a hard fork that has added a field."""
    with lied_to(node) as (world, _):
        was = world.cursor.number
        world.proxy.on("eth_getBlockByNumber", _after_a_hard_fork)
        grow(world, 2)
        world.follow()
        assert world.cursor.number == was
        monkeypatch.setattr(hashes, "PATIENCE", 0)  # as if that had been long ago
        world.follow()
        assert world.cursor.number == node.head
        assert world.cursor.hashes_until == was
        assert contents(world) == truth(world)
        monkeypatch.undo()
        indexer.forget()
        grow(world, 1)
        world.follow()
        assert world.cursor.number == node.head
        Blockchain.objects.update(verify="all")
        grow(world, 1)
        world.follow()
        assert world.cursor.number == node.head - 1, "nothing unproved"
        Blockchain.objects.update(verify="sample")
        world.proxy.be_good()  # as after an update
        world.follow()
        assert world.cursor.number == node.head
        assert world.cursor.hashes_until is None


def _after_a_hard_fork(call: Any) -> Any:
    block = call.forward()
    return block and {**block, "requestsHash": "0x" + "11" * 32}


@pytest.mark.parametrize("kind", ["drop", "invent", "retopic"])
@pytest.mark.parametrize("blocks", [1, 4])
def test_what_a_filter_contradicts_is_repaired_without_a_sample(
    node: Node, kind: Kind, blocks: int
) -> None:
    with lied_to(node) as (world, liar):
        for _ in range(blocks):
            world.mint(3)
        liar.lie(Lie(kind))
        world.follow()
        assert liar.lies_about(kind)
        assert contents(world) == truth(world)
        world.check()


@pytest.mark.parametrize("kind", ABOUT_LOGS)
def test_in_a_sample_every_lie_about_logs_is_found(node: Node, settings: Any, kind: Kind) -> None:
    check_all_of(settings)
    with lied_to(node) as (world, liar):
        grow(world)
        liar.lie(Lie(kind))
        world.follow()
        assert contents(world) == truth(world)
        assert world.cursor.contradictions


def test_the_changed_data_of_blocks_outside_the_sample_is_put_right_by_the_next_audit(
    node: Node,
) -> None:
    with lied_to(node) as (world, liar):
        grow_in_data(world)
        liar.lie(Lie("change"))
        world.follow()
        assert contents(world) != truth(world)
        report = audit(world.network_id)
        assert report is not None
        assert report.mended
        assert contents(world) == truth(world)
        assert world.cursor.mended == report.mended


def test_a_contradiction_has_everything_read_since_the_audit_before_the_last_one_compared(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chain.indexing.repair.audits.PROBES", 0)
    with lied_to(node) as (world, liar):
        audit(world.network_id)
        grow_in_data(world, 6)
        liar.lie(Lie("change"))
        world.follow()
        audit(world.network_id)
        assert contents(world) != truth(world), "nothing was suspicious"
        world.mint(1)
        liar.lie(Lie("change"), Lie("drop", first=node.head))
        world.follow()
        [again] = Recheck.objects.all()
        assert again.kind == Recheck.RECENT
        assert again.next_block <= node.head - 6
        liar.lie(Lie("change"))
        audit(world.network_id)
        assert contents(world) == truth(world)
        assert not Recheck.objects.exists()


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_an_audit_replaces_nothing_by_what_a_provider_with_another_chain_has(
    node: Node, verify: str
) -> None:
    """Neither in final blocks, which are compared by their heights, nor above."""
    with lied_to(node, verify=verify) as (world, liar):
        grow(world)
        node.mine(70)
        grow(world)
        indexer.forget()
        world.follow()
        assert (world.cursor.finalized or 0) > (world.cursor.began_at or 0) + 4
        liar.lie(Lie("forge"))
        assert audit(world.network_id) is None
        assert "trouble" in world.cursor.audit
        assert contents(world) == truth(world)
        liar.be_honest()
        audit(world.network_id)
        assert world.cursor.mended == 0
        world.check()


def test_a_probe_of_an_audit_that_shows_a_lie_has_recent_blocks_compared(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chain.indexing.repair.audits.PROBES", 1)
    with lied_to(node) as (world, liar):
        grow_in_data(world, 6)
        liar.lie(Lie("change"))
        world.follow()
        assert contents(world) != truth(world), "nothing was suspicious"
        audit(world.network_id)
        assert Recheck.objects.get().kind == Recheck.RECENT
        audit(world.network_id)
        assert contents(world) == truth(world)


def test_a_block_that_was_repaired_is_counted_also_if_the_next_one_is_refused(node: Node) -> None:
    with lied_to(node, verify="all") as (world, liar):
        was = world.cursor.contradictions
        world.mint(2)
        world.mint(2)
        liar.lie(
            Lie("change", last=node.head - 1),
            Lie("change", first=node.head, in_receipts=True),
        )
        world.follow()
        assert world.cursor.contradictions == was + 2
        assert world.cursor.number < node.head


def test_after_a_fork_with_unknown_headers_no_provider_is_refuted_by_their_hashes(
    node: Node,
) -> None:
    with lied_to(node) as (world, _):
        raw = {**node.block(world.cursor.number), "extraData": "0x1234"}
        header = msgspec.convert(raw, Header)
        assert evidence.is_refuted(world.network_id, header)
        Cursor.objects.update(hashes_until=header.height - 1)
        capabilities.forget()
        assert not evidence.is_refuted(world.network_id, header)
        Cursor.objects.update(hashes_until=header.height)
        capabilities.forget()
        assert evidence.is_refuted(world.network_id, header)


@pytest.mark.slow
def test_what_is_not_clear_stays_to_be_compared(node: Node, settings: Any) -> None:
    check_all_of(settings)
    with lied_to(node) as (world, liar):
        grow(world)
        world.follow()
        liar.lie(Lie("change", in_receipts=True))
        Recheck.objects.create(
            network_id=world.network_id, kind=Recheck.RECENT, next_block=1, last_block=node.head
        )
        audit(world.network_id)
        assert Recheck.objects.exists()
        assert contents(world) == truth(world), "nothing that isn't proved changes anything"
        liar.be_honest()
        audit(world.network_id)
        assert not Recheck.objects.exists()


@pytest.mark.parametrize("verify", ["sample", "all"])
@pytest.mark.parametrize("field", ["mixHash", "sha3Uncles", "nonce"])
def test_a_header_without_a_field_does_not_hide_that_logs_are_missing(
    node: Node, verify: str, field: str
) -> None:
    with lied_to(node, verify=verify) as (world, liar):
        was = world.cursor.number

        def without(call: Any) -> Any:
            block = call.forward()
            return block and {**block, field: None, "logsBloom": "0x" + "00" * 256}

        liar.lie(Lie("drop"))
        world.proxy.on("eth_getBlockByNumber", without)
        world.proxy.on("eth_getBlockByHash", without)
        grow(world)
        world.follow()
        assert world.cursor.number == was
        assert "hash" in str(world.cursor.trouble)


@pytest.mark.parametrize("percent", [0, 5, 100])
def test_missing_receipts_do_not_end_the_doubt_about_missing_logs(
    node: Node, settings: Any, percent: int
) -> None:
    check_all_of(settings, percent)
    with lied_to(node) as (world, liar):
        was = world.cursor.number
        liar.lie(Lie("drop"))
        for method in ("eth_getBlockReceipts", "eth_getTransactionReceipt"):
            world.proxy.on(method, gives(None))
        world.mint(1)
        world.follow()
        assert world.cursor.number == was


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_a_network_without_contracts_is_read_also_if_its_headers_prove_nothing(
    node: Node, settings: Any, verify: str
) -> None:
    check_all_of(settings)
    with network(node, verify=verify) as world:
        world.proxy.on("eth_getBlockByNumber", _of_another_make)
        world.proxy.on("eth_getBlockByHash", _of_another_make)
        grow(world, 1)
        world.follow()
        grow(world)
        world.follow()
        assert world.cursor.number == node.head


@pytest.mark.parametrize("verify", ["sample", "all"])
@pytest.mark.parametrize("kind", ["drop", "change"])
def test_a_provider_that_is_caught_does_not_hold_up_an_honest_one(
    node: Node, verify: str, kind: Kind
) -> None:
    """It gets requests first, contradicts itself, and is paused for a minute."""
    with lied_to(node, verify=verify) as (world, liar), proxied(node) as honest:
        provider(world.proxy.url, "liar", world.network_id)
        provider(honest.url, "honest", world.network_id, weight=0)
        pool.forget()
        liar.lie(Lie(kind, in_receipts=True))
        for _ in range(6):
            world.mint(2)
            world.follow()
        world.follow()
        assert world.cursor.number == node.head
        assert contents(world) == truth(world)


@pytest.mark.slow
def test_a_block_that_no_provider_has_right_does_not_hide_those_behind_it(node: Node) -> None:
    with lied_to(node, verify="all") as (world, liar):
        grow_in_data(world, 12)
        world.follow()
        bad = node.head - 9
        ContractEvent.objects.filter(block_number__gt=bad).update(args={"tokenId": "1"})
        liar.lie(Lie("change", first=bad, last=bad, in_receipts=True))
        Recheck.objects.create(
            network_id=world.network_id, kind=Recheck.RECENT, next_block=1, last_block=node.head
        )
        audit(world.network_id)
        assert contents(world) == truth(world)
        assert Recheck.objects.get().next_block == bad
        liar.be_honest()
        audit(world.network_id)
        assert not Recheck.objects.exists()


# -- Filters that name every contract -------------------------------------------------------------


def fill(world: Network) -> None:
    """Events of another contract that set most bits of the next block's filter."""
    world.node.automine(True)
    other = world.node.deployed("Gem")
    world.node.automine(False)
    for _ in range(5):
        other.transact("spam", 400, gas=5_000_000)


def test_a_full_filter_does_not_hide_a_missing_log_where_every_block_is_checked(
    node: Node,
) -> None:
    with lied_to(node, verify="all") as (world, liar):
        fill(world)
        world.mint(1)
        bloom = node.block()["logsBloom"]
        assert int(bloom, 16).bit_count() > 1500
        liar.lie(Lie("drop"))
        world.follow()
        assert contents(world) == truth(world)


def test_a_full_filter_does_not_hide_a_missing_log_from_a_sample(node: Node, settings: Any) -> None:
    check_all_of(settings)
    with lied_to(node) as (world, liar):
        fill(world)
        world.mint(1)
        liar.lie(Lie("drop"))
        world.follow()
        assert contents(world) == truth(world)


# -- Nodes and networks of other makes ------------------------------------------------------------


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_a_node_without_receipts_of_blocks_is_queried_for_each(node: Node, verify: str) -> None:
    with lied_to(node, verify=verify) as (world, liar):
        world.proxy.on("eth_getBlockReceipts", fails(-32601, "the method does not exist"))
        grow(world)
        liar.lie(Lie("retopic"))
        world.follow()
        assert contents(world) == truth(world)


def test_a_node_that_has_no_receipts_is_read_unless_every_block_is_checked(
    node: Node, settings: Any
) -> None:
    check_all_of(settings)
    with lied_to(node) as (world, _):
        for method in ("eth_getBlockReceipts", "eth_getTransactionReceipt"):
            world.proxy.on(method, gives(None))
        grow(world)
        world.follow()
        assert contents(world) == truth(world)
        assert world.cursor.number == node.head
        Blockchain.objects.update(verify="all")
        grow(world)
        world.follow()
        assert world.cursor.number == node.head - 4
        assert "receipts" in str(world.cursor.trouble)


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_headers_without_filters_whose_hashes_cannot_be_computed_prove_nothing(
    node: Node, verify: str
) -> None:
    """There are networks of that make, and they are read."""
    with lied_to(node) as (world, _):
        Blockchain.objects.update(verify=verify)
        Cursor.objects.update(proves_hashes=False, proves_receipts=False)
        indexer.forget()
        world.proxy.on("eth_getBlockByNumber", _of_another_make)
        world.proxy.on("eth_getBlockByHash", _of_another_make)
        grow(world)
        world.follow()
        assert world.cursor.number == node.head
        assert contents(world) == truth(world)


def _of_another_make(call: Any) -> Any:
    block = call.forward()
    return block and {
        **block,
        "logsBloom": "0x" + "00" * 256,
        "mixHash": None,
        "receiptsRoot": None,
    }
