"""A chain that is another one below what is final halts its network, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from chain import doctor
from chain.indexing import head
from chain.indexing.head import commits
from chain.indexing.history import backfill
from chain.indexing.storage import cursors
from chain.models import Block, Blockchain, ContractEvent, Cursor, OutboxEntry, Reorganisation
from tests.chain.indexed_network import Network, let_a_minute_pass, listen, network
from tests.chain.rpc.networks import provider
from tests.evm.node import Node, running_node
from tests.evm.proxy import proxied

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network read up to its head, with events in final blocks and in others."""
    with network(node) as world:
        listen(world)
        world.follow()
        for _ in range(5):
            node.mine(19)
            world.mint(2)
        world.follow()
        head.indexer.forget()
        world.follow()
        world.check()
        assert world.cursor.finalized == node.head - 64
        yield world


def remembered(world: Network) -> tuple[object, ...]:
    events = ContractEvent.objects.order_by("pk").values_list("pk", "canonical")
    blocks = Block.objects.order_by("number").values_list("hash", "canonical")
    return list(events), list(blocks), OutboxEntry.objects.count(), world.cursor.number


def test_a_reorganisation_below_what_is_final_halts_the_network(world: Network) -> None:
    was = remembered(world)
    final = world.cursor.finalized
    world.node.reorg(66)
    world.node.mine(3)
    halted = world.follow().halted
    assert halted is not None
    assert f"block {final}" in halted
    assert world.proxy.url not in halted
    assert remembered(world) == was
    assert not Reorganisation.objects.exists()
    assert world.requests() == 0


def test_a_network_that_restarts_is_halted(world: Network) -> None:
    was = remembered(world)
    world.node.rpc("anvil_reset")
    world.node.mine(5)
    assert world.follow().halted is not None
    assert remembered(world) == was


def test_64_blocks_are_not_too_many(world: Network) -> None:
    world.node.reorg(64, [(world.gem.request("spam", 1), 3)])
    assert world.follow().halted is None
    world.check()


def test_what_was_not_final_when_it_was_read_may_change_though_others_are_by_now(
    world: Network,
) -> None:
    """The service was away while the last blocks that it had read changed, and became final."""
    world.node.reorg(3, [(world.gem.request("spam", 4), 1)])
    world.node.mine(100)
    head.indexer.forget()
    assert world.follow().halted is None
    world.follow()
    world.check()


def test_a_halted_network_goes_on_where_it_was(world: Network) -> None:
    """Its provider was the node of another chain for a while."""
    with running_node(world.network_id) as other:
        other.mine(world.node.head + 5)
        Blockchain.objects.update(rpc_endpoint=other.url)
        assert world.follow().halted is not None
    world.proxy.forget_counts()
    Blockchain.objects.update(rpc_endpoint=world.proxy.url)
    world.mint(1)
    world.follow()
    assert world.proxy.calls["eth_getLogs"] == 0
    message = StringIO()
    call_command("chain_resume", str(world.network_id), stdout=message)
    assert "resumes" in message.getvalue()
    world.follow()
    world.check()
    assert world.cursor.halted is None


def test_a_halted_network_goes_on_from_a_lower_block(world: Network) -> None:
    fork = world.node.head - 66
    world.node.reorg(66, [(world.gem.request("spam", 3), 10)])
    world.node.mine(1)
    assert world.follow().halted is not None
    with pytest.raises(CommandError, match="another one than was read"):
        call_command("chain_resume", str(world.network_id), "--unwind-to", str(fork + 1))
    assert world.cursor.halted is not None
    message = StringIO()
    call_command("chain_resume", str(world.network_id), "--unwind-to", str(fork), stdout=message)
    assert str(fork) in message.getvalue()
    assert world.cursor.halted is None
    world.follow()
    world.check()


def test_a_development_chain_that_was_thrown_away_is_read_again(world: Network) -> None:
    world.node.rpc("anvil_reset")
    world.node.automine(True)
    assert world.node.deployed("Gem").address == world.gem.address
    world.node.automine(False)
    world.mint(2)
    world.follow()
    message = StringIO()
    call_command("chain_resume", str(world.network_id), "--from-scratch", stdout=message)
    assert "resumes from scratch" in message.getvalue()
    assert world.told() == set()
    world.mint(1)
    world.follow()
    world.mint(3)
    world.follow()
    assert world.cursor.halted is None
    world.check()
    while backfill.advance(world.network_id):
        pass
    assert len(world.shown()) == 6


def start_a_shorter_chain(world: Network) -> None:
    """Start the chain from scratch, to a height of which no header is stored any more."""
    Block.objects.filter(number__lt=world.cursor.finalized).delete()
    world.node.rpc("anvil_reset")
    world.node.mine(5)
    assert world.follow().halted is None


def status_of(world: Network) -> str:
    out = StringIO()
    call_command("chain_status", str(world.network_id), stdout=out)
    return out.getvalue()


def test_a_chain_that_was_started_again_and_is_still_short_has_a_remedy(world: Network) -> None:
    remedy = f"script/manage chain_resume {world.network_id} --from-scratch"
    start_a_shorter_chain(world)
    was = remembered(world)
    assert remedy not in status_of(world), "a node may be behind for a moment"
    with pytest.raises(CommandError, match="not halted"):
        call_command("chain_resume", str(world.network_id), "--from-scratch")
    Cursor.objects.update(looked_at=timezone.now() - timedelta(seconds=61))
    world.follow()
    assert remedy in status_of(world)
    assert [
        followed_chain
        for followed_chain in doctor.indexed_networks()
        if remedy in (followed_chain.advice or "")
    ]
    with pytest.raises(CommandError, match="not halted"):
        call_command("chain_resume", str(world.network_id), "--unwind-to", "3")
    assert remembered(world) == was
    call_command("chain_resume", str(world.network_id), "--from-scratch", stdout=StringIO())
    world.follow()
    assert world.cursor.number == world.node.head
    assert "everything was reverted" in status_of(world)
    assert remedy not in status_of(world)


def test_a_network_of_which_no_provider_answers_is_not_discarded(world: Network) -> None:
    Cursor.objects.update(looked_at=timezone.now() - timedelta(seconds=61))
    Blockchain.objects.update(rpc_endpoint="http://127.0.0.1:1")
    world.follow()
    assert "--from-scratch" not in status_of(world)
    with pytest.raises(CommandError, match="not halted"):
        call_command("chain_resume", str(world.network_id), "--from-scratch")


class Terminal(StringIO):
    """Standard input of an operator at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("way", [["--from-scratch"], ["--unwind-to", "0"]])
def test_reverting_needs_the_networks_id_on_a_terminal(
    world: Network, way: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Cursor.objects.update(halted="another chain")
    was = remembered(world)
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    out = StringIO()
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("chain_resume", str(world.network_id), *way, stdout=out)
    assert "10 events" in out.getvalue()
    assert remembered(world) == was
    monkeypatch.setattr("sys.stdin", Terminal(f"{world.network_id}\n"))
    call_command("chain_resume", str(world.network_id), *way, stdout=out)
    assert not ContractEvent.objects.filter(canonical=True).exists()


def test_reverting_with_yes_asks_nothing(world: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    Cursor.objects.update(halted="another chain")
    monkeypatch.setattr("sys.stdin", Terminal(""))
    call_command(
        "chain_resume", str(world.network_id), "--from-scratch", "--yes", stdout=StringIO()
    )
    assert not ContractEvent.objects.filter(canonical=True).exists()


def test_only_what_is_halted_is_resumed(world: Network) -> None:
    with pytest.raises(CommandError, match="not halted"):
        call_command("chain_resume", str(world.network_id))
    with pytest.raises(CommandError, match="There is no network 424242"):
        call_command("chain_resume", "424242")
    was = remembered(world)
    for way in (
        ["--from-scratch"],
        ["--unwind-to", str(world.node.head - 1)],
        ["--unwind-to", "9999"],
    ):
        with pytest.raises(CommandError, match=r"is not halted\. Nothing was changed"):
            call_command("chain_resume", str(world.network_id), *way)
    assert remembered(world) == was


def test_a_network_that_resumed_in_the_meantime_is_not_discarded(world: Network) -> None:
    Cursor.objects.update(halted="another chain")
    at = cursors.read(world.network_id)
    assert at is not None
    head.resume(world.network_id)
    was = remembered(world)
    with pytest.raises(head.Elsewhere):
        commits.index_from_scratch(at)
    assert remembered(world) == was


@pytest.mark.slow
def test_a_provider_of_another_chain_is_outvoted_by_one_that_is_right(world: Network) -> None:
    """Two chains of one id: one provider has been set up for the wrong one."""
    with running_node(world.network_id) as other, proxied(other) as wrong:
        other.mine(world.node.head + 5)
        provider(wrong.url, "wrong", world.network_id, weight=1000)
        right = provider(world.proxy.url, "right", world.network_id, weight=0)
        world.mint(1)
        world.follow()
        assert world.cursor.halted is None
        world.check()
        let_a_minute_pass()
        world.proxy.refuse()
        world.follow()
        assert world.cursor.halted is None
        assert "wrong has another chain at block" in str(world.cursor.trouble)
        world.proxy.accept()
        right.delete()
        world.follow()
        assert world.cursor.halted is not None
