"""Two providers, one of which lies: what the network's headers prove decides between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from django.test import Client

from backend.site.staff import ADMINISTRATORS
from chain.core.blocks.hashes import hash_of
from chain.core.node import Header
from chain.indexing import verification
from chain.indexing.head import indexer
from chain.models import Blockchain, Cursor, Provider
from chain.networks import configuration
from chain.rpc import pool
from tests.chain.indexed_network import Network, listen, network
from tests.chain.lying_network import contents, truth
from tests.chain.rpc.networks import provider
from tests.evm.faults import altered, fails, gives, late, only_if
from tests.evm.liar import Kind, Liar, Lie
from tests.evm.node import Node
from tests.evm.proxy import Call, Proxy, proxied
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db


@contextmanager
def two(node: Node, *, verify: str = "sample", first: str = "honest") -> Iterator[Any]:
    """A network with two providers, of which ``first`` gets requests first; and the hostile one."""
    node.mine(3)
    with network(node) as world, proxied(node) as hostile:
        Blockchain.objects.update(verify=verify)
        for proxy, name in ((world.proxy, "honest"), (hostile, "hostile")):
            weight = 10 if name == first else 0
            provider(proxy.url, name, world.network_id, weight=weight)
        listen(world)
        world.follow()
        world.mint(2)
        world.follow()
        assert world.cursor.number == node.head
        yield world, hostile


def check_reads_on(world: Network, *, blocks: int = 1) -> None:
    for _ in range(blocks):
        world.mint(2)
    world.follow()
    assert world.cursor.number == world.node.head
    assert contents(world) == truth(world)
    assert world.cursor.halted is None


def trouble_of(name: str) -> str | None:
    row: str | None = Provider.objects.values_list("trouble", flat=True).get(name=name)
    return row


@pytest.mark.parametrize("verify", ["sample", "all"])
@pytest.mark.parametrize("first", ["honest", "hostile"])
@pytest.mark.parametrize("kind", ["drop", "change", "invent"])
@pytest.mark.parametrize("in_receipts", [False, True])
def test_lies_about_logs_of_one_do_not_hold_up_the_network(
    node: Node, verify: str, first: str, kind: Kind, in_receipts: bool
) -> None:
    with two(node, verify=verify, first=first) as (world, hostile):
        Liar(hostile).lie(Lie(kind, in_receipts=in_receipts, in_bloom=in_receipts))
        for blocks in (1, 3, 20):
            pool.forget()  # as after a minute: the hostile one gets requests again
            check_reads_on(world, blocks=blocks)
        assert trouble_of("honest") is None
        assert trouble_of("hostile") is not None or first == "hostile"  # then receipts repair it


@pytest.mark.parametrize("first", ["honest", "hostile"])
def test_blocks_with_wrong_hashes_of_one_do_not_hold_up_the_network(node: Node, first: str) -> None:
    with two(node, first=first) as (world, hostile):
        Liar(hostile).lie(Lie("wrong hash", first=node.head + 1))
        for _ in range(3):
            pool.forget()
            check_reads_on(world)
        assert "another hash than it states" in str(trouble_of("hostile"))
        assert trouble_of("honest") is None


# -- What the headers prove is learned from blocks that are stored ---------------------------------


def of_another_make(call: Call) -> Any:
    """Blocks whose hashes are computed in another way."""
    block = call.forward()
    return block and {**block, "extraData": "0xab"}


def with_own_hash(block: Any) -> Any:
    return {**block, "hash": hash_of(msgspec.convert(block, Header))}


def make_of_another_make(*proxies: Proxy) -> None:
    Cursor.objects.update(proves_hashes=False, proves_receipts=False)
    verification.forget()
    for proxy in proxies:
        proxy.on("eth_getBlockByNumber", of_another_make)
        proxy.on("eth_getBlockByHash", of_another_make)


@pytest.mark.parametrize("first", ["honest", "hostile"])
def test_a_block_that_one_provider_makes_up_teaches_nothing(node: Node, first: str) -> None:
    with two(node, verify="all", first=first) as (world, hostile):
        make_of_another_make(world.proxy, hostile)
        check_reads_on(world)
        assert not world.cursor.proves_hashes

        def made_up(call: Call) -> Any:
            block = of_another_make(call)
            is_newest = block and int(block["number"], 16) == node.head
            return with_own_hash(block) if is_newest else block

        world.mint(2)
        hostile.on("eth_getBlockByNumber", made_up)
        hostile.on("eth_getLogs", gives([]))
        for _ in range(4):
            pool.forget()
            world.follow()
        assert not world.cursor.proves_hashes
        hostile.be_good()
        make_of_another_make(hostile)
        indexer.forget()
        check_reads_on(world)


def _set_by_admin(staff: Client, world: Network, verify: str) -> None:
    row = Blockchain.objects.get()
    page = f"/admin/chain/blockchain/{row.pk}/change/"
    fields = {"active": "on", "poll_interval": row.poll_interval, "confirmations": 0}
    answer = staff.post(page, {**fields, "finality_depth": "", "verify": verify})
    assert answer.status_code == 302, answer.text


def _set_by_service(staff: Client, world: Network, verify: str) -> None:
    configuration.change(world.network_id, {"verify": verify})


@pytest.mark.parametrize("change", [_set_by_admin, _set_by_service])
def test_a_change_of_verify_clears_what_was_learned(node: Node, change: Any) -> None:
    """As after a fork that headers of another make come with."""
    staff = logged_in(ADMINISTRATORS)
    with two(node, verify="all") as (world, hostile):
        assert world.cursor.proves_hashes
        assert world.cursor.proves_receipts
        for proxy in (world.proxy, hostile):
            proxy.on("eth_getBlockByNumber", of_another_make)
            proxy.on("eth_getBlockByHash", of_another_make)
        was = world.cursor.number
        world.mint(1)
        world.follow()
        assert world.cursor.number == was
        for verify in ("sample", "all"):
            change(staff, world, verify)
            assert not world.cursor.proves_hashes
            assert not world.cursor.proves_receipts
        verification.forget()
        pool.forget()
        check_reads_on(world)


def test_a_change_to_the_same_clears_nothing(node: Node) -> None:
    with two(node, verify="all") as (world, _):
        configuration.change(world.network_id, {"verify": "all", "name": "Main"})
        assert world.cursor.proves_hashes


# -- Finality --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verify", ["sample", "all"])
@pytest.mark.parametrize("depth", [None, 5])
def test_one_of_two_makes_nothing_final_too_early(
    node: Node, verify: str, depth: int | None
) -> None:
    """An ordinary reorganisation would halt the network then."""
    with two(node, verify=verify, first="hostile") as (world, hostile):
        Blockchain.objects.update(finality_depth=depth)
        node.mine(100)

        def tags(call: Call) -> Any:
            if call.params[0] in ("finalized", "safe"):
                return call.forward("latest", *call.params[1:])
            return call.forward()

        hostile.on("eth_getBlockByNumber", tags)
        for _ in range(3):
            world.mint(1)
            indexer.forget()
            world.follow()
        final = int(node.block("finalized")["number"], 16) if depth is None else node.head - depth
        assert world.cursor.number == node.head
        assert final - 3 <= (world.cursor.finalized or 0) <= final
        node.reorg(1)
        check_reads_on(world, blocks=2)


@pytest.mark.parametrize("tags", ["missing", "refused", "half"])
def test_one_of_two_alone_makes_nothing_final(node: Node, tags: str) -> None:
    """The other one is down, or doesn't say what is final."""
    with two(node, first="hostile") as (world, hostile):
        node.mine(100)
        world.follow()
        was = world.cursor.finalized or 0

        def early(call: Call) -> Any:
            if call.params[0] in ("finalized", "safe"):
                return call.forward("latest", *call.params[1:])
            return call.forward()

        hostile.on("eth_getBlockByNumber", early)
        if tags == "missing":
            world.proxy.refuse()
        else:
            refused = ("finalized", "safe") if tags == "refused" else ("safe",)
            world.proxy.on(
                "eth_getBlockByNumber",
                only_if(lambda call: call.params[0] in refused, fails(-32000, "no such tag")),
            )
        for _ in range(3):
            world.mint(1)
            indexer.forget()
            world.follow()
        final = int(node.block("finalized")["number"], 16)
        assert world.cursor.number == node.head
        assert was <= (world.cursor.finalized or 0) <= max(was, final)


# -- Answers that don't fit together ---------------------------------------------------------------


def _without_our_block(world: Network, hostile: Proxy) -> None:
    ours = hex(world.cursor.number or 0)

    def block(call: Call) -> Any:
        return None if call.params[0] == ours else call.forward()

    hostile.on("eth_getBlockByNumber", block)


def _of_another_block(world: Network, hostile: Proxy) -> None:
    field = {"blockHash": "0x" + "ab" * 32}
    hostile.on("eth_getLogs", altered(lambda logs: [{**log, **field} for log in logs]))


def _removed(world: Network, hostile: Proxy) -> None:
    hostile.on("eth_getLogs", altered(lambda logs: [{**log, "removed": True} for log in logs]))


@pytest.mark.parametrize("lie", [_without_our_block, _of_another_block, _removed])
def test_a_first_provider_that_contradicts_itself_is_not_used_on(node: Node, lie: Any) -> None:
    with two(node, first="hostile") as (world, hostile):
        lie(world, hostile)
        world.mint(2)
        world.follow()
        check_reads_on(world)


# -- A compared provider that has other blocks than were requested --------------------------------


def _nothing_below_its_head(world: Network, hostile: Proxy) -> None:
    newest = world.node.head

    def block(call: Call) -> Any:
        place = call.params[0]
        is_new = place.startswith("0x") and int(place, 16) > newest
        return None if is_new else call.forward()

    hostile.on("eth_getBlockByNumber", block)


def _another_height(world: Network, hostile: Proxy) -> None:
    newest = world.node.head

    def block(call: Call) -> Any:
        place = call.params[0]
        is_new = place.startswith("0x") and int(place, 16) > newest
        return call.forward(hex(newest), *call.params[1:]) if is_new else call.forward()

    hostile.on("eth_getBlockByNumber", block)


@pytest.mark.parametrize("lie", [_nothing_below_its_head, _another_height])
def test_a_provider_without_the_blocks_below_its_head_holds_nothing_up_for_long(
    node: Node, lie: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chain.core.comparisons.SHORTEST", 0.0)
    with two(node) as (world, hostile):
        lie(world, hostile)
        for _ in range(4):
            world.mint(2)
            world.follow()
        check_reads_on(world)
        assert trouble_of("honest") is None
        assert "can't be compared" in str(trouble_of("hostile"))


@pytest.mark.parametrize("hook", [late(0.2), fails(-32603, "internal error")])
def test_a_provider_that_only_holds_up_what_is_final_is_left_out(
    node: Node, hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chain.core.comparisons.SHORTEST", 0.0)
    monkeypatch.setattr("chain.core.comparisons.SLOW", 0.1)
    with two(node) as (world, hostile):
        is_tag = only_if(lambda call: call.params[0] in ("safe", "finalized"), hook)
        hostile.on("eth_getBlockByNumber", is_tag)
        for _ in range(4):
            world.mint(1)
            indexer.forget()
            world.follow()
        assert "is final" in str(trouble_of("hostile"))
        assert trouble_of("honest") is None
        check_reads_on(world)
