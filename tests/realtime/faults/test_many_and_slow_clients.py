"""A thousand clients that come back at once, and clients that don't read (F21)."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as connect_and_wait

from realtime.process.reports import processes
from tests.realtime.channel.chains import ANN, NOBODY, Chain
from tests.realtime.faults.listeners import PATIENCE, Listener, ended, until
from tests.realtime.server_process import Serving, serving

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.django_db]

CLIENTS = 1000
MISSED = 100


@pytest.fixture
def process(tmp_path: Path, db: None) -> Iterator[Serving]:
    with serving(tmp_path, WS_MAX_PER_ADDRESS="0", WS_SEND_QUEUE="65536") as server:
        yield server


def connecting(process: Serving, **options: Any) -> Any:
    async def connect(path: str) -> ClientConnection:
        return await unix_connect(
            str(process.socket),
            f"ws://localhost{path}",
            compression=None,
            open_timeout=PATIENCE,
            **options,
        )

    return connect


def test_a_thousand_clients_come_back_and_each_is_told_everything_once(
    process: Serving, chain: Chain
) -> None:
    chain.add(*range(1, MISSED + 1), block=1)

    async def scenario() -> list[Listener]:
        query = f"network={chain.network_id}"
        clients = [Listener(connecting(process), query, since="0") for _ in range(CLIENTS)]
        tasks = [asyncio.create_task(client.listen()) for client in clients]
        await until(lambda: sum(client.hellos for client in clients) >= CLIENTS // 2)
        # Others still connect while this happens.
        add = asyncio.to_thread(chain.add, *range(MISSED + 1, MISSED + 11), block=2)
        await add
        await until(lambda: all(len(client.frames) >= MISSED + 10 for client in clients))
        await ended(tasks)
        return clients

    clients = asyncio.run(scenario())
    everything = [*range(1, MISSED + 11)]
    assert all(client.told == everything for client in clients)
    assert {client.hellos for client in clients} == {1}


def test_who_does_not_read_is_closed_delays_nobody_and_comes_back(
    process: Serving, chain: Chain
) -> None:
    """What is queued for it is bounded; the last message that it has read says where to go on."""
    big = {"from": NOBODY, "to": ANN, "note": "x" * 4000}
    count = 3000

    def stream() -> None:
        for block in range(1, count // 100 + 1):
            tokens = range((block - 1) * 100 + 1, block * 100 + 1)
            rows = [
                chain.row(
                    token, block, index, "a", event_name="Told", args=big | {"tokenId": token}
                )
                for index, token in enumerate(tokens)
            ]
            chain.commit(rows)

    async def scenario() -> None:
        query = f"network={chain.network_id}&event=Told"
        idle = await asyncio.to_thread(_connected, process, f"/ws?{query}&since=now")
        reader = Listener(connecting(process), query)
        task = asyncio.create_task(reader.listen())
        await until(lambda: reader.hellos)
        before = process.memory().rss
        began = monotonic()
        await asyncio.to_thread(stream)
        await until(lambda: len(reader.frames) == count)
        assert reader.hellos == 1, "the one who reads was closed"
        assert monotonic() - began < 60
        assert process.memory().rss - before < 60 * 1024 * 1024
        await until(lambda: any(item["closed"].get("1013") for item in processes()))
        code, cursor, read = await asyncio.to_thread(_read_to_the_end, idle)
        # It is cut off if it hasn't read the close a moment later either.
        assert code in (1013, 1006)
        assert 0 < read < count
        again = Listener(connecting(process), query, since=cursor)
        second = asyncio.create_task(again.listen())
        await until(lambda: len(again.frames) >= count - read)
        assert again.told == [*range(read + 1, count + 1)]
        await ended([task, second])

    asyncio.run(scenario())


def _connected(process: Serving, path: str) -> Any:
    """A client that reads nothing until a test lets it, with a small buffer of its own."""
    plain = socket.socket(socket.AF_UNIX)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(str(process.socket))
    return connect_and_wait(
        f"ws://localhost{path}", sock=plain, compression=None, max_queue=1, legacy=True
    )


def _read_to_the_end(client: Any) -> tuple[int, str, int]:
    """The code of the close, the last cursor, and how many events there were."""
    cursor, events = "", 0
    try:
        while True:
            message = json.loads(client.recv(PATIENCE))
            cursor = message["id"]
            events += "networkId" in message
    except ConnectionClosed:
        return client.close_code, cursor, events
