"""A subscription is trusted while it announces what nodes return, as early as polls see it."""

from __future__ import annotations

import pytest

from chain.core.blocks.heads import LONGEST_PAUSE, PROOF, Heads

POLL = 2.0


class Network:
    """A network with a block every so many seconds, whose polling and subscription are moves of a
    test."""

    def __init__(self, block: float = 12.0) -> None:
        self.heads = Heads()
        self.block = block
        self.now = 1000.0
        self.height = 100
        self.heads.opened()
        self.poll()

    def poll(self) -> None:
        """A request for the newest block."""
        self.heads.compare(self.heads.newest, self.height, self.now, POLL)

    def mine(self, count: int = 1) -> None:
        for _ in range(count):
            self.now += self.block
            self.height += 1

    def announce(self, height: int | None = None) -> bool:
        """The subscription announces a block, and the network is polled if that is worth it."""
        is_worth_it = self.heads.announced(self.height if height is None else height, self.now)
        if is_worth_it:
            self.poll()
        return is_worth_it

    def prove(self, blocks: int = PROOF) -> None:
        for _ in range(blocks):
            self.mine()
            self.announce()

    @property
    def pause(self) -> float | None:
        return self.heads.pause(self.now, POLL)


@pytest.fixture
def network() -> Network:
    return Network()


def test_it_is_trusted_after_some_blocks_that_it_has_announced(network: Network) -> None:
    for _ in range(PROOF):
        assert network.pause is None
        network.mine()
        network.announce()
    assert network.pause == 24.0


@pytest.mark.parametrize(("block", "pause"), [(0.25, POLL), (2.0, 4.0), (12.0, 24.0), (60.0, 30.0)])
def test_the_pause_is_two_block_intervals_between_the_poll_s_and_half_a_minute(
    block: float, pause: float
) -> None:
    network = Network(block)
    network.prove()
    assert network.pause == pause


def test_a_longer_polling_interval_holds(network: Network) -> None:
    network.prove()
    assert network.heads.pause(network.now, 3 * LONGEST_PAUSE) == 3 * LONGEST_PAUSE


def test_one_that_falls_silent_is_not_trusted_once_a_poll_sees_a_block(network: Network) -> None:
    network.prove(20)
    network.mine(2)
    network.poll()
    assert network.pause is None
    network.mine()
    network.announce()  # it skips two
    assert network.pause is None
    network.prove(PROOF - 1)
    assert network.pause is not None


def test_one_that_repeats_what_it_has_announced_is_not_trusted(network: Network) -> None:
    network.prove()
    for _ in range(PROOF):
        network.mine()
        network.announce(network.height - 1)
        assert network.pause is None


def test_one_that_repeats_old_heads_in_their_order_is_not_trusted(network: Network) -> None:
    network.prove()
    first = network.height - PROOF
    for height in range(first, first + 10):
        network.mine()
        network.announce(height)
    assert network.pause is None


def test_heads_that_no_node_has_are_not_believed(network: Network) -> None:
    network.prove()
    network.announce(2**50)
    assert network.pause is None
    for _ in range(PROOF):
        network.mine()
        network.announce(2**50)
        assert network.pause is None


def test_one_that_skips_blocks_is_never_trusted(network: Network) -> None:
    for _ in range(10):
        network.mine(2)
        network.announce()
        assert network.pause is None


def test_one_whose_messages_name_no_block_is_never_trusted(network: Network) -> None:
    for _ in range(10):
        network.mine()
        network.heads.announced(None, network.now)
        network.poll()
        assert network.pause is None


def test_one_that_is_later_than_polls_is_not_trusted(network: Network) -> None:
    network.prove()
    for _ in range(10):
        network.mine()
        network.poll()
        network.now += 2 * POLL
        network.announce()
        network.now -= 2 * POLL
        assert network.pause is None


def test_one_that_is_a_little_behind_the_nodes_is_trusted(network: Network) -> None:
    network.prove()
    for _ in range(10):
        network.mine()
        network.poll()
        assert network.pause is None  # until it has announced the block
        network.now += 0.3
        network.announce()
        network.now -= 0.3
        assert network.pause is not None


def test_a_node_that_is_a_little_behind_the_subscription_is_polled_again(network: Network) -> None:
    network.prove()
    network.mine()
    before = network.heads.newest
    network.heads.announced(network.height, network.now)
    network.heads.compare(before, network.height - 1, network.now, POLL)
    assert network.pause is not None  # not known to be behind: the block was announced meanwhile
    network.heads.compare(network.height, network.height - 1, network.now, POLL)
    assert network.pause is None
    network.now += POLL
    network.poll()
    assert network.pause is not None


def test_a_reorganisation_is_no_disagreement(network: Network) -> None:
    network.prove()
    before = network.heads.newest
    for height in (network.height - 1, network.height, network.height + 1):
        network.heads.announced(height, network.now)
    network.height += 1
    network.heads.compare(before, network.height, network.now, POLL)
    assert network.pause is not None


def test_it_is_not_trusted_while_it_is_closed(network: Network) -> None:
    network.prove()
    assert network.heads.closed()
    assert not network.heads.closed()
    network.poll()
    assert network.pause is None


def test_what_came_while_it_was_closed_is_not_expected_of_it(network: Network) -> None:
    network.prove()
    network.heads.closed()
    network.mine(5)
    network.poll()
    network.now += 10 * POLL
    network.heads.opened()
    network.poll()
    network.prove()
    assert network.pause is not None


def test_opening_again_and_again_proves_nothing(network: Network) -> None:
    for _ in range(10):
        network.heads.closed()
        network.mine()
        network.heads.opened()
        network.poll()
        assert network.pause is None


def test_a_quiet_network_is_polled_less_and_less_often() -> None:
    network = Network(2.0)
    network.prove()
    pauses = []
    for _ in range(6):
        pause = network.pause
        assert pause is not None
        pauses.append(pause)
        network.now += pause
        network.poll()
    assert pauses == [4.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_announcements_without_new_blocks_soon_wake_no_one(network: Network) -> None:
    network.prove()
    woken = [network.announce() for _ in range(100)]
    assert 0 < sum(woken) < 10
    network.now += POLL
    assert network.announce()
    assert not network.announce()
    network.mine()
    assert network.announce()
    assert network.announce()
