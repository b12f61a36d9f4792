"""One embedded Redis server, on a socket that only its own account (and root) can reach.

It keeps an append-only file, so that queued tasks survive a restart; nothing else in it matters.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable

from backend.instance.account import Account
from backend.instance.errors import StartError
from backend.instance.folder import DataFolder
from backend.kernel.process import children
from backend.operations.embedded.binaries import Binaries
from backend.operations.embedded.engine_logs import EngineLog, redis_line

_START = 60.0  # seconds
_STOP = 20.0
_PONG = b"+PONG"
_LOADING = b"-LOADING"
DATABASES = 64


class Redis:
    """The server whose data is in a data folder. ``on_idle`` is called all the time while it
    starts."""

    name = "Redis"

    def __init__(
        self, folder: DataFolder, account: Account, binaries: Binaries, *, durable: bool = True
    ) -> None:
        self.on_idle: Callable[[], None] = lambda: None
        self.folder = folder
        self.log = folder.log / "redis.log"
        self.lines = EngineLog("redis", self.log, redis_line)
        self._account = account
        self._binaries = binaries
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._has_run = False

    def start(self) -> None:
        """Start the server; returns when it answers."""
        self._wait_for_predecessor()
        settings = {
            "port": "0",
            "unixsocket": str(self.folder.redis_socket),
            "unixsocketperm": "700",
            "dir": str(self.folder.redis),
            "databases": str(DATABASES),
            "save": "",
            "appendonly": "yes" if self._durable else "no",
            "daemonize": "no",
        }
        arguments = [part for name, value in settings.items() for part in (f"--{name}", value)]
        with self.log.open("ab") as log, children.undisturbed():
            self._process = children.start(
                [self._binaries.redis_server, *arguments],
                account=self._account,
                log=log,
                folder=self.folder.redis,
            )
        patience = time.monotonic() + _START
        while not (answer := self._answer()).startswith(_PONG):
            if self._process.poll() is not None:
                self._process = None
                raise StartError(
                    f"Redis doesn't start with {self.folder.redis}; the log is {self.log}. "
                    "Nothing in it is needed for long: the folder may be moved away."
                )
            if answer.startswith(_LOADING):  # a large file, however long that takes
                patience = time.monotonic() + _START
            elif time.monotonic() > patience:
                self.stop()
                raise StartError(f"Redis wasn't ready after {_START:.0f} seconds; see {self.log}.")
            self.on_idle()
            time.sleep(0.01)
        if not self._has_run:
            self.lines.skip()
        self._has_run = True

    def stop(self) -> None:
        """Stop the server; what is queued is on the disk by then."""
        children.stop(self._process, [(signal.SIGTERM, _STOP)])
        self._process = None

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def end(self) -> str:
        """What ended the server; its log says more."""
        return children.end_of(self._process)

    @property
    def missing(self) -> str | None:
        """What keeps clients from connecting while the server runs."""
        return children.unreachable(self.folder.redis_socket)

    @property
    def pids(self) -> set[int]:
        return {self._process.pid} if self._process else set()

    def _wait_for_predecessor(self) -> None:
        """Wait until a server that lost its parent a moment ago has ended."""
        patience = time.monotonic() + _STOP
        while self._answer():
            if time.monotonic() > patience:
                raise StartError(f"Another Redis server uses {self.folder.redis}.")
            time.sleep(0.05)

    def _answer(self) -> bytes:
        """The answer to a ping, empty if there is none."""
        # By hand: a client library would try again for seconds while the server isn't there yet.
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            try:
                client.connect(str(self.folder.redis_socket))
                client.sendall(b"PING\r\n")
                return client.recv(64)
            except OSError:
                return b""
