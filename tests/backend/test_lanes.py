"""Places in lanes: no server takes those of others."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from random import Random

from backend.tasks.lanes import Lane

NEVER, ALWAYS = 1000.0, -1.0  # seconds after which a server counts as slow


def known(lane: Lane, *peers: str) -> None:
    """Let tasks for each server end, so that it is known how quick it is."""
    for peer in peers * 3:
        with lane.place(peer) as has_place:
            assert has_place


def hold(held: ExitStack, lane: Lane, peer: str, count: int = 10) -> int:
    """Take so many places, and return how many were free."""
    return sum(held.enter_context(lane.place(peer)) for _ in range(count))


def test_a_server_gets_no_more_than_its_share_and_others_get_the_rest() -> None:
    lane = Lane(6, share=4, slow=NEVER)
    known(lane, "a", "b", "c")
    with ExitStack() as held:
        assert [hold(held, lane, peer) for peer in ("a", "b", "c")] == [4, 2, 0]
    with ExitStack() as held:
        assert hold(held, lane, "c") == 4


def test_slow_servers_have_half_a_share_and_half_of_the_lane_together() -> None:
    lane = Lane(6, share=4, slow=ALWAYS)
    known(lane, *"abcd")
    with ExitStack() as held:
        assert [hold(held, lane, peer) for peer in "abcd"] == [2, 1, 0, 0]


def test_unknown_servers_leave_half_of_the_lane_to_those_that_are_quick() -> None:
    lane = Lane(6, share=4, slow=NEVER)
    known(lane, "quick")
    with ExitStack() as held:
        assert sum(hold(held, lane, f"new {number}") for number in range(40)) == 3
        assert hold(held, lane, "quick") == 3


def test_a_server_that_is_slow_at_times_is_not_quick() -> None:
    lane = Lane(6, share=4, slow=NEVER)
    known(lane, "a")
    lane._note("a", is_quick=False)
    for _ in range(2):
        lane._note("a", is_quick=True)
    with ExitStack() as held:
        assert hold(held, lane, "a") == 2
    lane._note("a", is_quick=True)
    with ExitStack() as held:
        assert hold(held, lane, "a") == 4


def test_what_waits_is_called_once_when_there_is_a_place() -> None:
    lane = Lane(2, share=1, slow=NEVER)
    called: list[str] = []

    def wait(key: str) -> None:
        lane.call_with_room("a", key, partial(called.append, key))

    with lane.place("a"):
        for key in ("first", "second", "first"):
            wait(key)
        with lane.place("b"):
            pass
        assert called == []
    assert called == ["first"]
    with lane.place("a"):
        pass
    assert called == ["first", "second"]
    wait("third")
    assert called == ["first", "second", "third"], "there is a place already"


def test_in_any_order_no_bound_is_exceeded_and_all_that_wait_get_their_turn() -> None:
    random = Random(29)
    for _ in range(50):
        lane = Lane(random.randint(1, 6), random.randint(1, 3), slow=random.choice((NEVER, ALWAYS)))
        called: list[str] = []
        waiting: set[str] = set()
        held: list[tuple[str, ExitStack]] = []
        for _ in range(200):
            if held and random.random() < 0.5:
                held.pop(random.randrange(len(held)))[1].close()
            else:
                peer = random.choice("abcdefgh")
                stack = ExitStack()
                if stack.enter_context(lane.place(peer)):
                    held.append((peer, stack))
                else:
                    lane.call_with_room(peer, None, partial(called.append, peer))
                    waiting.add(peer)
            peers = [peer for peer, _ in held]
            assert len(peers) <= lane.places
            assert all(peers.count(peer) <= lane.share for peer in peers)
        for _, stack in held:
            stack.close()
        for _ in range(len(waiting)):
            with lane.place("new"):
                pass
        assert waiting <= {*called}


def test_what_waits_and_fails_does_not_fail_the_task_whose_place_it_gets() -> None:
    lane = Lane(1, share=1, slow=NEVER)
    called: list[str] = []

    def fail() -> None:
        called.append("failing")
        raise RuntimeError("no broker")

    with lane.place("a"):
        lane.call_with_room("a", "failing", fail)
    assert called == ["failing"]
    with lane.place("a") as has_place:
        assert has_place
