"""A network with a working subscription is polled rarely, one with a broken one at its interval."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from time import monotonic, sleep

import pytest
import redis
from django.conf import settings
from django.utils import timezone

from chain import dispatch
from chain.core.blocks.heads import LONGEST_PAUSE, PROOF
from chain.indexing.schedule import polls, wakeups
from chain.models import Blockchain, Cursor
from tests.chain import indexed_network
from tests.chain.indexed_network import Network
from tests.evm.node import Node

pytestmark = pytest.mark.django_db(transaction=True)

INTERVAL = 20.0


@pytest.fixture
def network(node: Node) -> Iterator[Network]:
    """A network with a subscription that has been proven."""
    with indexed_network.network(node, poll_interval=int(INTERVAL * 1000)) as world:
        Blockchain.objects.update(wss_endpoint=world.proxy.socket_url)
        world.follow()
        wakeups.begin()
        try:
            until(lambda: polls.heads_of(world.network_id).newest is not None)
            settle()
            for _ in range(PROOF):
                mine(world)
            yield world
        finally:
            wakeups.end()


def until(condition, seconds: float = 15) -> None:
    """Wait for something that another thread does."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it has not happened"
        sleep(0.005)


def settle() -> None:
    """Wait until everything is done that a head has led to."""
    waker = wakeups._Running.waker
    assert waker is not None
    until(lambda: not waker._busy)


def mine(world: Network) -> None:
    """A block that is read because its head is announced."""
    head = world.node.mine()
    until(lambda: world.cursor.number == head)
    settle()


def be_due(world: Network, polled: float = INTERVAL) -> datetime:
    """Let the network be due, so many seconds after its last poll; the moment at which it is."""
    now = timezone.now()
    Cursor.objects.update(polled_at=now - timedelta(seconds=polled), next_poll_at=now)
    return now


def sent() -> int:
    """How many polls one tick sends."""
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        broker.delete("celery:chain", "celery:backfill")
        dispatch.dispatch()
        return int(broker.llen("celery:chain"))


def is_deferred(world: Network, due: datetime) -> bool:
    next_poll_at = world.cursor.next_poll_at
    assert next_poll_at is not None
    return next_poll_at > due


def test_no_poll_is_made_while_heads_arrive(network: Network) -> None:
    for _ in range(5):
        be_due(network, polled=0)
        mine(network)
        assert sent() == 0


def test_a_poll_is_made_every_half_minute_all_the_same(network: Network) -> None:
    be_due(network, polled=LONGEST_PAUSE)
    mine(network)
    assert sent() == 1
    cursor = network.cursor
    assert cursor.polled_at is not None
    mine(network)
    assert network.cursor.next_poll_at is not None
    assert network.cursor.next_poll_at - cursor.polled_at <= timedelta(seconds=LONGEST_PAUSE)


def test_a_poll_that_finds_nothing_new_is_as_good_as_a_head(network: Network) -> None:
    due = be_due(network, polled=0)
    polls.poll(network.network_id)
    assert is_deferred(network, due)


def test_one_that_falls_silent_is_noticed_by_the_next_poll(network: Network) -> None:
    be_due(network, polled=0)
    mine(network)
    network.proxy.socket.fall_silent()
    head = network.node.mine()
    assert sent() == 0  # a poll is deferred still, and no longer than by half a minute
    due = be_due(network)
    assert sent() == 1
    polls.poll(network.network_id)
    assert network.cursor.number == head
    assert due < (network.cursor.next_poll_at or due) < due + timedelta(seconds=INTERVAL + 15)

    # It has to announce some blocks again until it counts.
    network.proxy.socket.be_good()
    for number in range(PROOF):
        due = be_due(network)
        mine(network)
        assert is_deferred(network, due) == (number == PROOF - 1)


def test_heads_that_are_repeated_defer_no_poll(network: Network) -> None:
    old = network.node.head
    network.proxy.socket.alter(lambda message: None)
    head = network.node.mine()
    due = be_due(network)
    params = {"subscription": "0x1", "result": {"number": hex(old)}}
    network.proxy.socket.tell({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})
    until(lambda: network.cursor.number == head)
    settle()
    assert not is_deferred(network, due)


def test_heads_that_no_node_has_defer_no_poll(network: Network) -> None:
    due = be_due(network)
    network.proxy.forget_counts()
    params = {"subscription": "0x1", "result": {"number": hex(network.node.head + 1000)}}
    network.proxy.socket.tell({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})
    until(lambda: network.proxy.requests)
    settle()
    assert not is_deferred(network, due)


def test_a_subscription_that_is_closed_ends_the_pause_at_once(network: Network) -> None:
    far = timezone.now() + timedelta(seconds=10 * INTERVAL)
    Cursor.objects.update(next_poll_at=far)
    network.proxy.socket.refuse()
    until(lambda: not is_deferred(network, far - timedelta(seconds=1)))
    due = be_due(network)
    polls.poll(network.network_id)
    assert not is_deferred(network, due)


def test_a_node_that_fails_ends_the_pause_at_once(network: Network) -> None:
    mine(network)
    far = timezone.now() + timedelta(seconds=10 * INTERVAL)
    Cursor.objects.update(next_poll_at=far)
    network.proxy.refuse()
    network.node.mine()
    until(lambda: not is_deferred(network, far - timedelta(seconds=1)))


def test_blocks_that_need_confirmations_are_read_with_the_head_that_confirms_them(
    network: Network,
) -> None:
    Blockchain.objects.update(confirmations=2)
    for _ in range(3):
        number = network.cursor.number
        due = be_due(network, polled=0)
        head = network.node.mine()
        until(lambda head=head: network.cursor.head == head)
        settle()
        assert is_deferred(network, due)
    assert network.cursor.number == (number or 0) + 1 == head - 2


def test_another_process_polls_at_the_interval_when_the_one_with_the_subscription_is_gone(
    network: Network,
) -> None:
    be_due(network, polled=0)
    mine(network)
    wakeups.end()
    assert (network.cursor.next_poll_at or timezone.now()) - timezone.now() <= timedelta(
        seconds=LONGEST_PAUSE
    )
    for _ in range(3):
        be_due(network)
        assert sent() == 1
        due = be_due(network)
        polls.poll(network.network_id)
        assert not is_deferred(network, due)


def test_a_halted_network_defers_no_poll(network: Network) -> None:
    Cursor.objects.update(halted="for a test", halt_checked_at=timezone.now())
    due = be_due(network)
    polls.poll(network.network_id)
    assert not is_deferred(network, due)


def test_a_longer_interval_of_the_operator_holds(network: Network) -> None:
    Blockchain.objects.update(poll_interval=int(LONGEST_PAUSE * 10_000))
    be_due(network, polled=LONGEST_PAUSE * 2)
    mine(network)
    assert sent() == 0
