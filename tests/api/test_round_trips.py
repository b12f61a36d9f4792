"""How often the busiest requests go to PostgreSQL."""

from __future__ import annotations

import pytest

from tests.statements import traffic


@pytest.fixture
def game(master):
    object_id = master.make("Game", score=1, tags=[1])
    # Definitions in memory, statements prepared: what a process has after its first requests.
    for _ in range(2):
        master.get(f"/classes/Game/{object_id}")
        master.put(f"/classes/Game/{object_id}", {"score": 1})
        master.make("Game", score=1)
    return f"/classes/Game/{object_id}"


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("GET", None),
        ("PUT", {"score": 1}),
        ("PUT", {"score": {"__op": "Increment", "amount": 1}}),
    ],
)
def test_one_object_takes_one_round_trip(master, client, game, method, body):
    for caller in (master, client):
        caller.call(method, game, body)  # what has to be prepared is
        with traffic() as recorded:
            assert caller.call(method, game, body).status == 200
        assert (recorded.executions, recorded.round_trips) == (1, 1)


def test_a_find_takes_one_round_trip(client, game):
    with traffic() as recorded:
        client.results("Game", where={"score": {"$gt": 0}}, order="-score", limit=20)
    assert (recorded.executions, recorded.round_trips) == (1, 1)


def test_a_create_takes_one_round_trip(client, game):
    client.make("Game", score=1)
    with traffic() as recorded:
        client.make("Game", score=1)
    assert (recorded.executions, recorded.round_trips) == (1, 1)
