"""Clients of Redis whose commands are interrupted."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from backend.kernel.connections.redis import Pool
from functions.runtime.deadlines import TimeIsUp


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a server that answers each command with its last argument, those with ``late``
    when the next command has come."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            held = b""
            while line := self.rfile.readline():
                count = int(line[1:])
                words = []
                for _ in range(count):
                    words.append(self.rfile.read(int(self.rfile.readline()[1:])))
                    self.rfile.readline()
                answer = b"$%d\r\n%s\r\n" % (len(words[-1]), words[-1])
                if words[-1].startswith(b"late"):
                    held += answer
                    continue
                is_handshake = words[0] in (b"CLIENT", b"HELLO")
                self.wfile.write(held + (b"+OK\r\n" if is_handshake else answer))
                held = b""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"redis://127.0.0.1:{server.server_address[1]}/?protocol=2"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("error", [TimeIsUp, SystemExit, KeyboardInterrupt])
def test_no_command_gets_the_answer_to_one_that_was_interrupted(
    url: str, error: type[BaseException], many: bool
) -> None:
    interruptions: list[type[BaseException]] = []

    class Interrupted(redis.Connection):
        """Interrupted between a command and its answer."""

        def read_response(self, *args: Any, **options: Any) -> Any:
            if interruptions:
                raise interruptions.pop()
            return super().read_response(*args, **options)

    pool = Pool(Interrupted, **Pool.from_url(url).connection_kwargs)
    server = redis.Redis.from_pool(pool)
    assert call(server, "before", many) == b"before"
    interruptions.append(error)
    with pytest.raises(error):
        call(server, "late", many)
    assert call(server, "second", many) == b"second"


def call(server: redis.Redis, key: str, many: bool) -> Any:
    if not many:
        return server.get(key)
    with server.pipeline(transaction=False) as steps:
        return steps.get(f"{key} too").get(key).execute()[1]
