"""Without Redis the service goes on answering, at once, and says so now and then."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from backend.limits.exact_counts import Bucket, Counter
from tests.rest import CLIENT, Api

LIMITED = {"path": "/nothing", "count": 1}


class Silent:
    """A server that takes connections and never says a word."""

    def __init__(self, listener: socket.socket) -> None:
        self.connections: list[socket.socket] = []
        self._listener = listener
        self.url = f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self.connections.append(self._listener.accept()[0])
            except OSError:
                return


@contextmanager
def silent_server() -> Iterator[Silent]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = Silent(listener)
        yield server
        for connection in server.connections:
            connection.close()


@pytest.fixture
def silent(settings) -> Iterator[Silent]:
    with silent_server() as server:
        settings.REDIS_URL = server.url
        yield server


@pytest.fixture
def closed_port(settings) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        settings.REDIS_URL = f"redis://127.0.0.1:{probe.getsockname()[1]}/0"


@pytest.fixture
def api() -> Api:
    return Api(CLIENT)


def test_requests_pass_uncounted(closed_port, limit, api):
    limit(LIMITED)
    replies = [api.post("/nothing") for _ in range(5)]
    assert [reply.status for reply in replies] == [404] * 5
    assert not any("RateLimit-Limit" in reply.headers for reply in replies)


def test_items_of_a_batch_pass_uncounted(closed_port, limit, client, master):
    master.make("Game")
    limit({"path": "/classes/*", "count": 1})
    item = {"method": "GET", "path": "/api/classes/Game"}
    for transaction in (False, True):
        reply = client.post("/batch", {"requests": [item] * 3, "transaction": transaction})
        assert ["success" in answer for answer in reply.json] == [True] * 3


def test_a_silent_redis_is_waited_for_once_and_then_left_alone_for_a_while(silent, limit, api):
    limit(LIMITED)
    assert [api.post("/nothing").status for _ in range(20)] == [404] * 20
    assert len(silent.connections) == 1


def test_one_warning_is_logged(closed_port, limit, api, capfd):
    limit(LIMITED)
    for _ in range(5):
        api.post("/nothing")
    assert capfd.readouterr().err.count("rate limits are not counted") == 1


def test_a_rule_may_refuse_what_it_can_not_count(closed_port, limit, api):
    limit({**LIMITED, "refuseWithoutRedis": True}, {"path": "/other", "count": 1})
    refused = api.post("/nothing")
    assert refused.error == (503, 1)
    assert int(refused.headers["Retry-After"]) >= 1
    assert api.post("/other").status == 404


def test_counting_begins_again_when_redis_is_back(settings, tmp_path):
    if not settings.REDIS_URL.startswith("unix:"):
        pytest.skip("The Redis of this run has no socket that could be moved away and back.")
    path, _, query = settings.REDIS_URL.removeprefix("unix://").partition("?")
    moved = tmp_path / "redis.sock"
    counter = Counter(f"unix://{moved}?{query}", pause=0)
    item = [[Bucket("limits:test:back", 1, 60_000)]]
    assert counter.count(item) is None
    moved.symlink_to(path)
    assert [counter.count(item)[0].passes for _ in range(2)] == [True, False]
    moved.unlink()
    # The connection that is open goes on.
    assert not counter.count(item)[0].passes


def test_what_no_rule_names_never_uses_redis(silent, limit, client, master):
    game = master.make("Game")
    limit("defaults")
    assert client.get(f"/classes/Game/{game}").status == 200
    assert client.post("/batch", {"requests": []}).status == 200
    assert silent.connections == []


def test_what_the_master_key_asks_never_uses_redis(silent, limit, master):
    limit({"path": "/classes/*"})
    master.make("Game")
    assert silent.connections == []
