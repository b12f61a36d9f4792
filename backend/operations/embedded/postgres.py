"""One embedded PostgreSQL server: made, started, stopped.

It listens on a socket in a folder that only its own account (and root) can enter, so it needs no
password and no port. Durability is PostgreSQL's default, except where a test asks for less.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from backend.instance.account import Account
from backend.instance.errors import StartError
from backend.instance.folder import DATABASE, USER, DataFolder
from backend.kernel.process import children
from backend.logs import plain
from backend.operations.embedded import cluster, upgrade
from backend.operations.embedded.binaries import POSTGRES_MAJOR, Binaries
from backend.operations.embedded.engine_logs import POSTGRES_PREFIX, EngineLog, postgres_line
from backend.operations.embedded.memory import available_memory

_START = 120.0  # seconds without a word
_STOP = 60.0
_SPEAK = 30.0  # seconds after which it is logged that the server is still starting
_SOON = 2.0  # seconds in which it usually starts

_LEAST_WAITING = 64  # megabytes of WAL that isn't archived
_MOST_WAITING = 4096

# For tests: nothing of theirs has to survive a power cut.
UNSAFE_BUT_FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
}


_SMALL = {
    "shared_buffers": "32MB",
    "max_connections": "60",
    "max_worker_processes": "2",
    # Each worker for reading takes some megabytes.
    "io_method": "sync",
}


def _shared_buffers() -> int:
    """An eighth of the memory, in megabytes: the index of a million objects doesn't fit into
    PostgreSQL's default of 128, which makes a query cost twice as much."""
    return max(128, min(1024, available_memory() // 8))


def _waiting_wal(data: Path) -> int:
    """How many megabytes of WAL may wait to be archived: a quarter of what is free, so that a place
    of backups that is away doesn't fill the disk."""
    return max(_LEAST_WAITING, min(_MOST_WAITING, shutil.disk_usage(data).free // 2**20 // 4))


class PostgreSQL:
    """The server whose data is in a data folder. ``patience`` is for a server that says nothing, in
    seconds; ``data`` for a cluster in another place than the folder's own. ``on_idle`` is called
    all the time while the server starts."""

    name = "PostgreSQL"

    def __init__(
        self,
        folder: DataFolder,
        account: Account,
        binaries: Binaries,
        settings: Mapping[str, str] | None = None,
        *,
        is_small: bool = False,
        patience: float = _START,
        data: Path | None = None,
    ) -> None:
        self.on_idle: Callable[[], None] = lambda: None
        self.folder = folder
        self.data = data or folder.postgres
        self.log = folder.log / "postgres.log"
        self.lines = EngineLog("postgres", self.log, postgres_line)
        self._account = account
        self._binaries = binaries
        self._settings = dict(settings or {})
        self._is_small = is_small
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server; returns when it answers. The first start makes the cluster."""
        upgrade.finish(self.folder)
        if not self.data.exists() or not any(self.data.iterdir()):
            self._initialise()
        self._check()
        # One that lost its parent a moment ago may still write a checkpoint.
        cluster.end_server(self.data)
        with self.log.open("ab") as log:
            begin = log.tell()
            with children.undisturbed():
                self._process = children.start(
                    [self._binaries.postgres, "-D", self.data, *self._options()],
                    account=self._account,
                    log=log,
                    death_signal=signal.SIGINT,
                    folder=self.data,
                )
        self._wait_until_ready(self._process, begin)

    def _options(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": f'"{self.folder.postgres_socket}"',
            "unix_socket_permissions": "0700",
            "log_timezone": "UTC",
            "log_line_prefix": POSTGRES_PREFIX,
            # Neither statements nor keys that are there already: values of objects are in both.
            "log_error_verbosity": "terse",
            "log_min_error_statement": "panic",
            "timezone": "UTC",
            "shared_buffers": f"{_shared_buffers()}MB",
            # The embedded server has no replicas.
            "max_logical_replication_workers": "0",
            "max_slot_wal_keep_size": f"{_waiting_wal(self.data)}MB",
        }
        settings |= (_SMALL if self._is_small else {}) | self._settings
        return [f"--{name}={value}" for name, value in settings.items()]

    def stop(self) -> None:
        """Stop the server: end connections, write a checkpoint, end."""
        children.stop(self._process, [(signal.SIGINT, _STOP), (signal.SIGQUIT, 10.0)])
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
        return children.unreachable(self.folder.postgres_socket / ".s.PGSQL.5432")

    @property
    def pids(self) -> set[int]:
        return {self._process.pid} if self._process else set()

    # -- first start ----------------------------------------------------------------------------

    def _initialise(self) -> None:
        """Make the cluster beside its place and move it there, so that half of one never counts."""
        fresh = self.data.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._account.own(fresh)
        command: list[str | Path] = [
            self._binaries.initdb,
            f"--pgdata={fresh}",
            f"--username={USER}",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--auth=trust",
            "--no-instructions",
        ]
        if self._settings.get("fsync") == "off":
            command.append("--no-sync")
        self._run(command, fresh)
        # By a server without connections, which needs no client library.
        alone: list[str | Path] = [self._binaries.postgres, "--single", "-D", fresh, "postgres"]
        self._run(alone, fresh, f"CREATE DATABASE {DATABASE};\n")
        if self.data.exists():
            self.data.rmdir()
        fresh.rename(self.data)
        self.lines.skip()

    def _run(self, command: Sequence[str | Path], fresh: Path, text: str = "") -> None:
        """Run a command for the new cluster, with the text on its standard input."""
        with self.log.open("ab") as log, tempfile.TemporaryFile() as commands:
            commands.write(text.encode())
            commands.seek(0)
            begin = log.tell()
            with children.undisturbed():
                process = children.start(
                    command, account=self._account, log=log, folder=fresh, stdin=commands
                )
            if process.wait() != 0:
                shutil.rmtree(fresh, ignore_errors=True)
                raise StartError(f"PostgreSQL's cluster can't be made: {self._last_words(begin)}")

    def _check(self) -> None:
        major = cluster.major_of(self.data)
        if major is None:
            raise StartError(
                f"The folder {self.data} is damaged: it is no PostgreSQL cluster (PG_VERSION is "
                "missing). Restore it from a backup, or set DATA_DIR to another folder."
            )
        if major < POSTGRES_MAJOR:
            raise StartError(
                f"The database in {self.data} was made by PostgreSQL {major}, this is "
                f"{POSTGRES_MAJOR}: `script/manage upgrade_postgres` brings it to this one."
            )
        if major > POSTGRES_MAJOR:
            raise StartError(
                f"The database in {self.data} was made by PostgreSQL {major}, which is newer than "
                f"this one ({POSTGRES_MAJOR}): use the release of the service that made it."
            )

    # -- starting -------------------------------------------------------------------------------

    def _wait_until_ready(self, process: subprocess.Popen[bytes], begin: int) -> None:
        """Wait for as long as the server says that it is starting: after a crash, it first brings
        in order what may be a large database."""
        began = spoken = time.monotonic()
        while process.poll() is None:
            server = cluster.server_of(self.data)
            state = server.state if server and server.pid == process.pid else ""
            if state == "ready":
                return
            now = time.monotonic()
            if not state and now - began > self._patience:
                self.stop()
                raise StartError(
                    f"PostgreSQL said nothing for {self._patience:.0f} seconds; see {self.log}."
                )
            if now - spoken > _SPEAK:
                plain.info("PostgreSQL is still starting", seconds=round(now - began))
                spoken = now
            self.on_idle()
            time.sleep(0.01 if now - began < _SOON else 0.1)
        self._process = None
        raise StartError(f"PostgreSQL doesn't start with {self.data}: {self._last_words(begin)}")

    def _last_words(self, begin: int) -> str:
        """What the log says about the failure, as one sentence."""
        with self.log.open("rb") as log:
            log.seek(begin)
            words = log.read().decode(errors="replace").splitlines()
        for mark in ("FATAL: ", "PANIC: ", "error: ", "ERROR: "):
            for line in words:
                if mark in line:
                    return f"{line.split(mark, 1)[1].strip()} (the log is {self.log})"
        return f"{words[-1].strip() if words else 'it said nothing'} (the log is {self.log})"
