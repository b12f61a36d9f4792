"""Processes that are killed at a certain point of their talk with PostgreSQL.

Between process and server stands a relay that reads along. When what passes is what it waits for,
it kills the process as ``kill -9`` does, and the server sees its connection end.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.other_process import ROOT, database_url

_PATIENCE = 60.0

Point = Callable[[bool, bytes, bytes], bool]
"""Given whether the process has sent a message (or the server), its type and its contents: whether
the process ends before the other side gets it."""


def in_copy() -> Point:
    """When rows are on their way, before their end is."""
    return lambda is_sent, kind, _: is_sent and kind == b"c"


def before_commit(of: bytes) -> Point:
    """When the transaction that has run a statement with this text is about to be committed."""
    observed = []

    def hit(is_sent: bool, kind: bytes, body: bytes) -> bool:
        if is_sent and of in body:
            observed.append(body)
        return bool(observed) and is_sent and b"COMMIT" in body

    return hit


def after_commit(of: bytes) -> Point:
    """When it has been committed, before the process knows."""
    committing = before_commit(of)
    committed = []

    def hit(is_sent: bool, kind: bytes, body: bytes) -> bool:
        if committing(is_sent, kind, body):
            committed.append(body)
        return bool(committed) and not is_sent and kind == b"C" and body.startswith(b"COMMIT")

    return hit


@dataclass
class Relay:
    """Relays connections to the server of the test run until it is to kill them."""

    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    point: Point | None = None
    victim: int = 0
    has_victim: threading.Event = field(default_factory=threading.Event)
    was_hit: bool = False

    @property
    def url(self) -> str:
        base, _, query = database_url().partition("?")
        stored = [item for item in query.split("&") if not item.startswith(("host=", "port="))]
        here = f"host=127.0.0.1&port={self.listener.getsockname()[1]}"
        return f"{base}?{'&'.join([*stored, here])}&sslmode=disable&gssencmode=disable"

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client, _server()), daemon=True).start()

    def _connect(self, client: socket.socket, server: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client, server:
            back = threading.Thread(target=self._relay, args=(False, server, client), daemon=True)
            back.start()
            self._relay(True, client, server)
            back.join(_PATIENCE)

    def _relay(self, is_sent: bool, source: socket.socket, target: socket.socket) -> None:
        try:
            for kind, body, raw in _messages(source, has_startup=is_sent):
                if self.point is not None and self.point(is_sent, kind, body):
                    self._kill()
                    break
                target.sendall(raw)
        except OSError:
            pass
        finally:
            for item in (source, target):
                with suppress(OSError):
                    item.shutdown(socket.SHUT_RDWR)

    def _kill(self) -> None:
        assert self.has_victim.wait(_PATIENCE)
        self.point, self.was_hit = None, True
        os.kill(self.victim, signal.SIGKILL)


def _server() -> socket.socket:
    from django.db import connection

    options = connection.settings_dict
    host, port = str(options["HOST"] or "/var/run/postgresql"), str(options["PORT"] or 5432)
    if not host.startswith("/"):
        return socket.create_connection((host, int(port)))
    made = socket.socket(socket.AF_UNIX)
    made.connect(f"{host}/.s.PGSQL.{port}")
    return made


def _messages(source: socket.socket, *, has_startup: bool) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Type, contents and all bytes of each message. The first one of a client has no type."""
    if has_startup:
        size = _exactly(source, 4)
        body = _exactly(source, struct.unpack("!I", size)[0] - 4)
        yield b"", body, size + body
    while True:
        kind = _exactly(source, 1)
        size = _exactly(source, 4)
        body = _exactly(source, struct.unpack("!I", size)[0] - 4)
        yield kind, body, kind + size + body


def _exactly(source: socket.socket, size: int) -> bytes:
    results = b""
    while len(results) < size:
        part = source.recv(size - len(results))
        if not part:
            raise ConnectionError
        results += part
    return results


_PROGRAM = """
import os, sys
import django
django.setup()
from django.db import connections
from chain.indexing import head as following
from chain.core.failures import NodeFailure
def race(network_id):
    # Without the lock.
    for _ in range(20):
        try:
            following.step(network_id)
        except (following.Elsewhere, NodeFailure):
            pass
ACTIONS = {"follow": following.follow, "race": race}
following.follow(0)  # what is imported late is there in all of them
connections.close_all()
for line in sys.stdin:
    action, network_id = line.split()
    child = os.fork()
    if not child:
        ACTIONS[action](int(network_id))
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@dataclass
class Reader:
    """Processes that read a network, one at a time, each of them new."""

    relay: Relay
    program: subprocess.Popen[str]

    def follow(self, network_id: int, point: Point | None = None) -> int:
        """Let one follow the network, and end at this point; how it ended (0 is well)."""
        return self._do("follow", network_id, point)

    def race(self, network_id: int) -> int:
        """Let one process poll the network repeatedly beside others; return how it ended."""
        return self._do("race", network_id, None)

    def _do(self, action: str, network_id: int, point: Point | None) -> int:
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        self.relay.has_victim.clear()
        self.relay.point, self.relay.was_hit = point, False
        self.program.stdin.write(f"{action} {network_id}\n")
        self.program.stdin.flush()
        self.relay.victim = int(self.program.stdout.readline())
        self.relay.has_victim.set()
        status = int(self.program.stdout.readline())
        assert self.relay.was_hit == (point is not None)
        return status


@contextmanager
def reading_processes() -> Iterator[Reader]:
    relay = Relay()
    threading.Thread(target=relay.serve, daemon=True).start()
    environment = {
        **os.environ,
        "DATABASE_URL": relay.url,
        "DJANGO_SETTINGS_MODULE": "backend.settings.django",
        "LOG_LEVEL": "ERROR",
    }
    program = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Reader(relay, program)
    finally:
        program.kill()
        program.wait(_PATIENCE)
        relay.listener.close()
