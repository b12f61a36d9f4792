"""The pump goes on reading after lost connections and without notifications."""

from __future__ import annotations

import pytest

from chain.indexing.storage.events import store_events
from objects.database.statements import fetch
from tests.realtime.channel.chains import Chain
from tests.realtime.channel.channel import House
from tests.realtime.channel.test_messages import of

pytestmark = pytest.mark.django_db


def test_what_nobody_is_woken_up_for_is_told_a_second_later(house: House, chain: Chain) -> None:
    client = house.connect(of(chain))
    chain.notifies = False
    chain.add(1, block=1)
    assert client.next()["data"]["tokenId"] == "1"


def test_a_connection_to_the_database_that_is_lost_loses_nothing(
    house: House, chain: Chain
) -> None:
    client = house.connect(of(chain))
    pump = house.pump
    for token in (1, 2):
        [(pid,)] = house.run(pump._thread.run(lambda: fetch(_PID, (), prepare=False)))
        chain.hang_up(int(pid))
        chain.add(token, block=token)
        assert client.tokens(1) == [token]


_PID = "SELECT pg_backend_pid()"


def test_a_row_that_nobody_understands_is_left_out(house: House, chain: Chain) -> None:
    client = house.connect(of(chain))
    rows = [chain.row(token, 1, token, "a") for token in (1, 2, 3)]

    def garbled(seq: int) -> int:
        count = store_events(chain.network_id, rows, after_seq=seq)
        fetch(_GARBLE, (chain.network_id,), prepare=False)
        return count

    chain.write(garbled)
    assert client.tokens(2) == [1, 3]


_GARBLE = """
UPDATE chain_outbox SET payload = '{"blockNumber": "five"}' WHERE network_id = %s AND seq = 2
"""
