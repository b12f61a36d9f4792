"""PostgreSQL ends and comes back while clients of real processes listen."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from websockets.sync.client import ClientConnection, connect

from realtime.sockets.connections import TRY_AGAIN
from tests.chain.faults.installation import Installation, installed
from tests.ports import free_port
from tests.realtime.livequery.desk import CLIENT_KEYS
from tests.realtime.server_process import close_code, eventually

pytestmark = [pytest.mark.process, pytest.mark.slow]

PATIENCE = 60


@pytest.fixture(scope="module")
def installation() -> Iterator[tuple[Installation, int]]:
    """Engines, a web process and a realtime process, and the port of the latter."""
    with installed() as made:
        port = free_port()
        made.start("realtime", REALTIME_BIND=f"127.0.0.1:{port}")
        made.make("Game", number=0)
        yield made, port


class Client:
    """A client that is subscribed to all games."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.say({"op": "connect", **CLIENT_KEYS})
        assert self.next()["op"] == "connected"

    def say(self, message: dict[str, Any]) -> None:
        self.connection.send(json.dumps(message))

    def next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.connection.recv(timeout=PATIENCE))
        return message

    def subscribe(self) -> None:
        """Subscribe, as often as it takes."""
        while True:
            self.say(
                {"op": "subscribe", "requestId": 1, "query": {"className": "Game", "where": {}}}
            )
            answer = self.next()
            if answer["op"] == "subscribed":
                return
            assert answer["code"] == 1, answer
            until_postgresql_is_back = 0.2
            time.sleep(until_postgresql_is_back)

    def number(self) -> int:
        """The number of the game that has come next."""
        event = self.next()
        assert event["op"] == "create", event
        return int(event["object"]["number"])


@contextmanager
def client(port: int) -> Iterator[Client]:
    """One who comes as soon as the process listens."""

    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    eventually(is_listening)
    with connect(f"ws://127.0.0.1:{port}/livequery", open_timeout=PATIENCE) as connection:
        yield Client(connection)


def write(installation: Installation, *numbers: int) -> None:
    """Make games, each as soon as that can be done."""

    def is_made(number: int) -> bool:
        return installation.call("POST", "/classes/Game", {"number": number})[0] == 201

    for number in numbers:
        eventually(lambda number=number: is_made(number))


def test_a_restart_of_postgresql_loses_nothing(installation):
    service, port = installation
    with client(port) as ann:
        ann.subscribe()
        write(service, 1, 2)
        assert [ann.number(), ann.number()] == [1, 2]
        service.postgres.stop()
        service.postgres.start()
        write(service, 3, 4)
        assert [ann.number(), ann.number()] == [3, 4]


def test_a_crash_of_postgresql_sends_clients_away_who_come_back(installation):
    service, port = installation
    with client(port) as ann:
        ann.subscribe()
        write(service, 1)
        assert ann.number() == 1
        crash(service)
        assert close_code(ann.connection) == TRY_AGAIN
    with client(port) as ann:
        ann.subscribe()
        write(service, 2, 3)
        assert [ann.number(), ann.number()] == [2, 3]


def crash(service: Installation) -> None:
    """All of the server begins again when one of its processes is killed."""
    with suppress(psycopg.OperationalError), psycopg.connect(service.folder.database_url) as item:
        os.kill(item.info.backend_pid, signal.SIGKILL)
        item.execute("SELECT 1")
