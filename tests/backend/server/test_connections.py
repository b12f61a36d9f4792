"""What a process counts: connections by network, room for new ones, memory for responses."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from backend.kernel.networks import client_network
from backend.server.connections import Connections
from backend.server.limits import Limits


@dataclass(eq=False)
class Peer:
    network: str
    idle_since: float | None = None
    unsent: int = 0
    drops: int = 0
    checks: list[float] = field(default_factory=list)

    def check(self, now: float) -> None:
        self.checks.append(now)

    def drop(self) -> None:
        self.drops += 1
        self.unsent = 0

    def shut_down(self) -> None:
        return None


def add(connections: Connections, *peers: Peer) -> list[bool]:
    return [connections.add(peer) for peer in peers]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("", ""),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("not:an:address", "not:an:address"),
    ],
)
def test_one_network_is_an_ipv4_address_or_a_64(address: str, network: str) -> None:
    assert client_network(address) == network


def test_a_network_has_a_limited_number_and_gets_it_back() -> None:
    connections = Connections(Limits(max_per_address=2))
    first, second, third = (Peer("a") for _ in range(3))
    assert add(connections, first, second, third, Peer("b")) == [True, True, False, True]
    assert (len(connections), connections.refused) == (3, 1)
    connections.remove(third)  # which was never counted
    assert not connections.add(third)
    connections.remove(first)
    connections.remove(first)
    assert add(connections, third, first) == [True, False]


def test_proxies_are_not_limited() -> None:
    connections = Connections(Limits(max_per_address=1))
    assert all(add(connections, *(Peer("") for _ in range(20))))


def test_room_is_made_by_the_busiest_network_and_its_longest_idle_connections() -> None:
    connections = Connections(Limits(max_connections=30))
    busy = [Peer("busy", idle_since=float(number)) for number in range(20)]
    working = Peer("busy")
    other_peers = [Peer(f"other-{number}", idle_since=0.0) for number in range(9)]
    add(connections, working, *reversed(busy), *other_peers)
    assert connections.add(Peer("new"))
    assert [peer for peer in busy if peer.drops] == busy[:2]
    assert not any(peer.drops for peer in (working, *other_peers))
    # There is room for one more before others have to go.
    assert connections.add(Peer("new"))
    assert sum(peer.drops for peer in busy) == 2
    assert len(connections) == 30


def test_a_flood_never_exceeds_the_limit_and_drops_no_one_twice() -> None:
    connections = Connections(Limits(max_connections=100, max_per_address=1000))
    peers = [Peer("flood", idle_since=float(number)) for number in range(500)]
    for peer in peers:
        assert connections.add(peer)
        assert len(connections) <= 100
    assert {peer.drops for peer in peers} == {0, 1}
    for peer in peers:  # as the event loop tells later
        connections.remove(peer)
    assert len(connections) == 0
    assert connections.add(Peer("flood"))


def test_without_idle_connections_the_busiest_network_loses_one() -> None:
    connections = Connections(Limits(max_connections=5))
    busy = [Peer("busy") for _ in range(3)]
    other_peers = [Peer("one"), Peer("two")]
    add(connections, *other_peers, *busy)
    assert connections.add(Peer("new"))
    assert sum(peer.drops for peer in busy) == 1
    assert not any(peer.drops for peer in other_peers)


def test_idle_connections_of_others_go_before_working_ones() -> None:
    connections = Connections(Limits(max_connections=4))
    busy = [Peer("busy") for _ in range(3)]
    idle = Peer("idle", idle_since=1.0)
    add(connections, *busy, idle)
    connections.add(Peer("new"))
    assert (idle.drops, sum(peer.drops for peer in busy)) == (1, 0)


def test_deadlines_are_checked_once_a_second_at_most() -> None:
    connections = Connections(Limits())
    peer = Peer("a")
    connections.add(peer)
    for now in (100.0, 100.5, 100.9, 101.0, 101.2, 102.5):
        connections.sweep(now)
    assert peer.checks == [100.0, 101.0, 102.5]


def test_the_largest_unsent_responses_of_the_network_with_most_go_when_memory_is_short() -> None:
    connections = Connections(Limits(unsent=1000))
    attacker = [Peer("attacker", unsent=size) for size in (100, 400, 50, 300)]
    victim = Peer("victim", unsent=300)
    small = Peer("small", unsent=100_000)  # not reported as full
    add(connections, *attacker, victim, small)
    for peer in (*attacker, victim):
        connections.set_full(peer, True)
    connections.sweep(100.0)
    assert [peer.drops for peer in attacker] == [0, 1, 0, 0]
    assert (victim.drops, small.drops) == (0, 0)
    connections.sweep(100.01)
    attacker[0].unsent = 1000
    connections.sweep(100.02)  # at once, without waiting for the deadlines
    assert [peer.drops for peer in attacker] == [1, 1, 0, 0]
    connections.set_full(victim, False)
    connections.remove(attacker[2])
    victim.unsent = 5000
    connections.sweep(100.03)
    assert victim.drops == 0


class TestALargeResponse:
    MIB = 1024 * 1024

    def test_is_refused_when_its_own_network_has_the_most(self) -> None:
        connections = Connections(Limits(unsent=10 * self.MIB))
        waiting = Peer("a", unsent=6 * self.MIB)
        asking = Peer("a")
        add(connections, waiting, asking)
        connections.set_full(waiting, True)
        assert connections.may_send(asking, 4 * self.MIB)
        assert not connections.may_send(asking, 5 * self.MIB)
        assert waiting.drops == 0

    def test_takes_the_memory_of_networks_that_have_more(self) -> None:
        connections = Connections(Limits(unsent=10 * self.MIB))
        attackers = [Peer("attacker", unsent=4 * self.MIB) for _ in range(2)]
        victim = Peer("victim")
        add(connections, *attackers, victim)
        for peer in attackers:
            connections.set_full(peer, True)
        assert connections.may_send(victim, 3 * self.MIB)
        assert sorted(peer.drops for peer in attackers) == [0, 1]

    def test_that_never_fits_is_refused(self) -> None:
        connections = Connections(Limits(unsent=10 * self.MIB))
        assert not connections.may_send(Peer("a"), 11 * self.MIB)

    def test_is_not_a_small_one(self) -> None:
        connections = Connections(Limits(unsent=10))
        assert connections.may_send(Peer("a"), self.MIB - 1)
