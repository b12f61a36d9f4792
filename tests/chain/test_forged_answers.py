"""Answers of one provider that no honest node gives: none of it is stored, nor does it last."""

from __future__ import annotations

from typing import Any

import msgspec
import psycopg
import pytest
from django.db import connection

from chain.core.blocks.hashes import hash_of
from chain.core.node import Header
from chain.indexing.head import indexer
from chain.indexing.history.backfill import advance
from chain.indexing.repair.audits import audit
from chain.models import Backfill, Blockchain, Cursor, Recheck
from tests.chain.backfills import listen as listen_to
from tests.chain.backfills import network_of
from tests.chain.indexed_network import Network, let_a_minute_pass
from tests.chain.ledger import shown
from tests.chain.lying_network import contents, events_on_chain, events_shown, lied_to, truth
from tests.chain.test_chaos import CRASHING
from tests.chain.test_verifying import check_all_of, grow, grow_in_data
from tests.evm.faults import altered
from tests.evm.liar import Lie, lying
from tests.evm.node import Node
from tests.evm.proxy import Call

pytestmark = pytest.mark.django_db


def check_recovers(world: Network) -> None:
    """The provider becomes honest: everything is indexed without a decision by staff."""
    world.proxy.be_good()
    let_a_minute_pass()
    indexer.forget()
    world.follow()
    assert world.cursor.halted is None
    assert world.cursor.number == world.node.head
    assert contents(world) == truth(world)
    world.check()


def pass_much_time(world: Network) -> None:
    """Hundreds of blocks become final."""
    for _ in range(4):
        world.node.mine(99)
        world.mint(2)
    indexer.forget()


@pytest.mark.slow
@pytest.mark.parametrize("verify", ["sample", "all"])
def test_the_last_of_many_final_blocks_has_to_have_its_hash(node: Node, verify: str) -> None:
    """A false one would be final: the network would be halted when its provider is honest again."""
    with lied_to(node, verify=verify) as (world, liar):
        pass_much_time(world)
        was = world.cursor.number or 0
        final = int(node.block("finalized")["number"], 16)
        assert final > was + 256
        liar.lie(Lie("wrong hash", first=final, last=final))
        world.follow()
        assert world.cursor.hash == node.block(world.cursor.number or 0)["hash"]
        assert (world.cursor.number or 0) < final
        check_recovers(world)


def _with_a_space(text: str) -> str:
    return f"{text[:4]} {text[4:]}"


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_a_filter_with_a_space_in_it_hides_no_logs(node: Node, settings: Any, verify: str) -> None:
    """It has the right hash where spaces are skipped, and is no number: as if it were empty."""
    check_all_of(settings)
    with lied_to(node, verify=verify) as (world, liar):
        was = world.cursor.number
        liar.lie(Lie("drop"))
        block = liar._block

        def hiding(call: Call) -> Any:
            results = block(call)
            return results and {**results, "logsBloom": _with_a_space(results["logsBloom"])}

        world.proxy.on("eth_getBlockByNumber", hiding)
        grow(world)
        world.follow()
        assert contents(world) == truth(world)
        if verify == "all":
            assert world.cursor.number == was
        liar.be_honest()
        check_recovers(world)


@pytest.mark.parametrize("verify", ["sample", "all"])
@pytest.mark.parametrize("name", ["hash", "transactions"])
def test_hashes_in_capital_letters_are_the_same_hashes(node: Node, verify: str, name: str) -> None:
    """They aren't stored as those of another block and of other transactions."""

    def capital(value: Any) -> Any:
        return [capital(item) for item in value] if isinstance(value, list) else _capital(value)

    with lied_to(node, verify=verify) as (world, _):
        world.proxy.on(
            "eth_getBlockByNumber", altered(lambda block: {**block, name: capital(block[name])})
        )
        grow(world, 1)
        world.follow()
        world.check()
        check_recovers(world)


def _capital(text: str) -> str:
    return f"0x{text[2:].upper()}"


def test_a_head_that_is_far_too_high_makes_nothing_final(node: Node) -> None:
    with lied_to(node) as (world, _):
        was = world.cursor.finalized
        world.proxy.on("eth_getBlockByNumber", _with_high_heads)
        world.mint(1)
        indexer.forget()
        world.follow()
        world.node.mine(100)
        indexer.forget()
        world.follow()
        assert world.cursor.finalized == was
        check_recovers(world)
        node.reorg(3, [(world.gem.request("spam", 2), 0)])
        world.follow()
        world.check()


def _with_high_heads(call: Call) -> Any:
    block = call.forward()
    is_tag = call.params[0] in ("latest", "safe", "finalized")
    return {**block, "number": "0xfffffff"} if is_tag else block


@pytest.mark.parametrize("lie", ["with another number", "far above", "of another chain"])
@pytest.mark.parametrize("verify", ["sample", "all"])
def test_a_false_tag_makes_nothing_final(node: Node, verify: str, lie: str) -> None:
    """What is final stays it: the next reorganisation would halt the network until an operator
    resumes it."""
    with lied_to(node, verify=verify) as (world, _):

        def falsified(call: Call) -> Any:
            if call.params[0] not in ("safe", "finalized"):
                return call.forward()
            if lie == "with another number":
                return {**call.forward(), "number": "0xfffffff"}
            changed: dict[str, Any] = (
                {"number": hex(node.head + 100_000)}
                if lie == "far above"
                else {"timestamp": "0x77"}
            )
            block = {**call.forward(hex(world.cursor.number or 0), False), **changed}
            return {**block, "hash": hash_of(msgspec.convert(block, Header))}

        grow(world, 2)
        world.follow()
        was = world.cursor.finalized
        world.proxy.on("eth_getBlockByNumber", falsified)
        grow(world, 2)
        indexer.forget()
        world.follow()
        assert world.cursor.finalized == was
        node.reorg(3, [(world.gem.request("spam", 2), 0)])
        check_recovers(world)


@pytest.mark.parametrize("answer", ["none", "empty", "of another block", "twice", "without logs"])
def test_where_every_block_is_checked_false_receipts_prove_nothing(node: Node, answer: str) -> None:
    def receipts(call: Call) -> Any:
        if answer == "none":
            return None
        if answer == "of another block":
            return call.forward(hex(int(call.params[0], 16) - 1))
        results = call.forward()
        if answer == "without logs":
            return [{**item, "logs": []} for item in results]
        return results * 2 if answer == "twice" else []

    with lied_to(node, verify="all") as (world, liar):
        was = world.cursor.number
        liar.lie(Lie("change"), Lie("drop", rate=0.5))
        world.proxy.on("eth_getBlockReceipts", receipts)
        grow(world)
        world.follow()
        assert world.cursor.number == was
        assert contents(world) == truth(world)
        check_recovers(world)


@pytest.mark.slow
def test_a_provider_that_lies_in_every_other_request_is_found_out(node: Node) -> None:
    """As an address with two machines, one of which is damaged."""
    with lied_to(node, verify="all") as (world, liar):
        requests = 0

        def alternate(calls: Any) -> None:
            nonlocal requests
            requests += 1
            lies = Lie("change", in_receipts=True), Lie("drop", in_receipts=True, in_bloom=True)
            liar.lie(*(lies if requests % 2 else ()))

        world.proxy.on_request(alternate)
        for _ in range(6):
            grow(world, 2)
            world.follow()
            assert contents(world) == truth(world)
        check_recovers(world)


def test_one_repaired_block_has_all_blocks_of_the_response_checked(
    node: Node, settings: Any
) -> None:
    with lied_to(node) as (world, liar):
        grow_in_data(world, 6)
        world.mint(1)
        liar.lie(Lie("change"), Lie("retopic", first=node.head))
        world.follow()
        assert contents(world) == truth(world)
        assert world.cursor.contradictions == 7


def test_a_process_that_is_killed_after_it_has_noted_a_contradiction_loses_nothing(
    node: Node,
) -> None:
    """The note is committed first; the events and the cursor follow, or are read again."""
    with lied_to(node) as (world, liar):
        with connection.cursor() as cursor:
            cursor.execute(CRASHING)
            cursor.execute("SELECT set_config('chaos.crash', 'on', false)")
        was = world.cursor
        grow(world)
        liar.lie(Lie("retopic"))
        with pytest.raises(psycopg.errors.RaiseException):
            world.follow()
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('chaos.crash', 'off', false)")
        assert world.cursor.number == was.number
        assert world.cursor.contradictions > was.contradictions
        assert Recheck.objects.exists()
        indexer.forget()
        world.follow()
        assert contents(world) == truth(world)
        world.check()
        liar.be_honest()
        audit(world.network_id)
        assert not Recheck.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_sample_of_history_has_the_receipts_of_a_block_in_each_range(node: Node) -> None:
    """Changed data is in no filter."""
    gem = node.deployed("Gem")
    node.automine(False)
    for _ in range(120):
        gem.transact("spamMinted", 1, 0, gas=5_000_000)
        node.mine()
    with lying(node, Lie("change")) as liar:
        network_id = network_of(node, liar.proxy.url)
        listen_to(gem)
        advance(network_id)
        assert Backfill.objects.get().done_at is not None
        assert events_shown(node.chain_id) == events_on_chain(gem, 0, node.head)
        assert Cursor.objects.get().contradictions


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_a_forged_chain_above_the_final_block_is_unwound_when_its_provider_is_honest(
    node: Node, verify: str
) -> None:
    """Nothing but another provider tells it from a reorganisation: each block has its hash."""
    with lied_to(node, verify=verify) as (world, liar):
        grow(world)
        liar.lie(Lie("forge", first=node.head - 1))
        world.follow()
        assert contents(world) != truth(world)
        liar.be_honest()
        world.mint(1)
        check_recovers(world)


def test_logs_that_are_no_logs_are_refused(node: Node) -> None:
    with lied_to(node, verify="all") as (world, _):
        for field in (
            {"topics": ["0x12"]},
            {"topics": ["words"]},
            {"topics": []},
            {"address": "0x00"},
            {"data": "0x1"},
            {"data": "0x12 34"},
            {"logIndex": "words"},
            {"removed": True},
        ):
            world.proxy.be_good()
            world.proxy.on("eth_getLogs", altered(_with_all(field)))
            world.mint(1)
            world.follow()
            assert contents(world) <= events_on_chain(world.gem, 0, node.head)
        check_recovers(world)


def _with_all(field: dict[str, Any]) -> Any:
    return lambda logs: [{**log, **field} for log in logs]


@pytest.mark.slow
def test_times_of_logs_are_those_of_their_headers(node: Node) -> None:
    with lied_to(node, verify="all") as (world, _):
        pass_much_time(world)
        world.proxy.on("eth_getLogs", altered(_with_all({"blockTimestamp": "0x77"})))
        for _ in range(10):
            world.follow()
        moments = {event[8] for event in shown(world.network_id)}
        assert "1970-01-01T00:01:59.000Z" not in moments
        check_recovers(world)


@pytest.mark.parametrize("depth", [None, 2])
@pytest.mark.parametrize("verify", ["sample", "all"])
def test_nothing_above_the_blocks_that_were_read_is_made_final(
    node: Node, verify: str, depth: int | None
) -> None:
    """A head or a tag that is far ahead would make all blocks final as soon as they are read, and
    the first reorganisation halt the network."""
    with lied_to(node, verify=verify) as (world, _):
        Blockchain.objects.update(finality_depth=depth)

        def far_ahead(call: Call) -> Any:
            block = call.forward()
            if call.params[0] not in ("latest", "safe", "finalized"):
                return block
            block = {**block, "number": hex(node.head + 100_000)}
            return {**block, "hash": hash_of(msgspec.convert(block, Header))}

        node.mine(100)  # as after an outage: the first of them are read before the head is
        indexer.forget()
        world.proxy.on("eth_getBlockByNumber", far_ahead)
        was = world.cursor.number or 0
        world.follow()
        assert (world.cursor.number or 0) > was
        assert (world.cursor.finalized or 0) <= (world.cursor.number or 0)
        assert (world.cursor.safe or 0) <= (world.cursor.number or 0)
        world.proxy.be_good()
        for _ in range(6):
            world.mint(1)
            indexer.forget()
            world.follow()
        node.reorg(1)
        check_recovers(world)
