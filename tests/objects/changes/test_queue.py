"""The order in which a reader reads what has been captured."""

from __future__ import annotations

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from objects.changes.images import Place
from objects.changes.queue import LARGE, PlaceQueue
from objects.core.names import SESSION, ClassName, Subject

_numbers = count(1)


def place(class_name: str, object_id: str = "a", size: int = 100) -> Place:
    return Place("1", next(_numbers), ClassName(Subject(class_name)), object_id, True, size)


def queue_of(*places: Place) -> PlaceQueue:
    queue = PlaceQueue()
    for each in places:
        queue.put(each)
    return queue


def test_classes_take_turns():
    flood = [place("Flood", str(number)) for number in range(3000)]
    other = [place("Other"), place("Other")]
    queue = queue_of(*flood, *other)
    assert queue.take()[:4] == [flood[0], other[0], flood[1], other[1]]


def test_a_large_change_is_read_alone_and_small_ones_before_the_next():
    large = [place("Long", "a", LARGE), place("Long", "b", LARGE)]
    small = [place("Game", "c"), place("Long", "d")]
    queue = queue_of(*large, *small)
    assert queue.take() == small
    assert queue.take() == [large[0]]
    late = place("Game", "e")
    queue.put(late)
    assert queue.take() == [late]
    assert queue.take() == [large[1]]
    assert queue.take() == []
    assert len(queue) == 0


def test_a_large_change_waits_for_earlier_ones_of_its_object():
    queue = queue_of(place("Game", "x"))
    queue.take()  # the next batch would be a large change
    small, large, behind = place("Long", "a"), place("Long", "a", LARGE), place("Long", "a")
    for each in (small, large, behind):
        queue.put(each)
    assert [queue.take() for _ in range(3)] == [[small], [large], [behind]]


def test_a_batch_is_limited_in_bytes():
    places = [place("Game", str(number), LARGE - 1) for number in range(10)]
    assert len(queue_of(*places).take()) == 5


def test_sessions_come_first_even_large_ones():
    queue = queue_of(place("Game"), place(SESSION, "s", 2 * LARGE), place("Game"))
    assert queue.take()[0].class_name == SESSION


def test_a_cleared_queue_returns_its_classes():
    queue = queue_of(place("Game"), place("Long", "a", LARGE), place("Long", "a"))
    assert queue.clear() == {"Game", "Long"}
    assert queue.take() == []
    queue.put(late := place("Long", "a"))
    assert queue.take() == [late]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.none(),
            st.builds(
                place,
                st.sampled_from(["A", "B", SESSION]),
                st.sampled_from("ab"),
                st.sampled_from([10, LARGE - 1, LARGE, 10 * LARGE]),
            ),
        )
    )
)
def test_every_change_is_read_once_and_those_of_an_object_in_order(steps: list[Place | None]):
    """None takes a batch while others are still to come."""
    queue = PlaceQueue()
    taken: list[Place] = []
    for step in steps:
        if step is None:
            taken += queue.take()
        else:
            queue.put(step)
    while batch := queue.take():
        taken += batch
    put = [step for step in steps if step is not None]
    assert sorted(each.seq for each in taken) == [each.seq for each in put]
    for changed in {(each.class_name, each.object_id) for each in put}:
        of_object = [each.seq for each in taken if (each.class_name, each.object_id) == changed]
        assert of_object == sorted(of_object)
