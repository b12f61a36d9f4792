"""The service with engines of its own and real processes, each of which can be killed: what tests
of the chain app do harm to."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psutil
import psycopg

from backend.instance.folder import DataFolder, temporary_folder
from backend.operations.embedded.binaries import engine_binaries
from backend.operations.embedded.postgres import UNSAFE_BUT_FAST, PostgreSQL
from backend.operations.embedded.redis_server import Redis
from tests.evm.artefacts import Contract
from tests.evm.node import Node
from tests.other_process import ROOT
from tests.ports import free_port
from tests.rest import MASTER

PATIENCE = 90.0  # seconds, for a machine that is busy with other things
_PAUSE = 0.05
_T = TypeVar("_T")


class Installation:
    """PostgreSQL, Redis, and the processes by their roles: several of one role may run, told apart
    by the keys that they are started under."""

    def __init__(self, folder: DataFolder) -> None:
        account = folder.prepare()
        binaries = engine_binaries(account, folder.runtime)
        self.folder = folder
        self.postgres = PostgreSQL(folder, account, binaries, UNSAFE_BUT_FAST)
        # What is queued is lost when it ends.
        self.redis = Redis(folder, account, binaries, durable=False)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.port = free_port()
        self.environment = {
            **os.environ,
            "DATABASE_URL": folder.database_url,
            "REDIS_URL": folder.redis_url,
            "DATA_DIR": str(folder.path),
            "LOG_LEVEL": "CRITICAL",
            "WEB_BIND": f"127.0.0.1:{self.port}",
            "WEB_WORKERS": "1",
            "PUBLIC_URL": f"http://127.0.0.1:{self.port}",
            "BACKFILL_CONCURRENCY": "1",
            "CHAIN_CONCURRENCY": "8",
        }

    # -- Processes -------------------------------------------------------------------------------

    def start(self, role: str, key: str | None = None, **settings: str) -> None:
        self.running[key or role] = subprocess.Popen(
            [sys.executable, "-m", "backend.serve", role],
            cwd=ROOT,
            env={**self.environment, **settings},
        )

    def with_processes(self, *roles: str) -> None:
        """Start those of these roles that don't run."""
        for role in roles:
            if role not in self.running:
                self.start(role)

    def kill(self, key: str) -> None:
        """As ``kill -9`` to the process and to its children, so that none can say goodbye."""
        process = self.running.pop(key)
        with contextlib.suppress(psutil.NoSuchProcess):
            family = [psutil.Process(process.pid)]
            family += family[0].children(recursive=True)
            for item in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    item.kill()
            psutil.wait_procs(family, timeout=PATIENCE)
        process.wait(PATIENCE)

    def kill_all(self) -> None:
        for key in [*self.running]:
            self.kill(key)

    def manage(self, *arguments: str) -> str:
        """What a command of ``manage.py`` prints."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**self.environment, "PROCESS": "manage", "LOG_LEVEL": "ERROR"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    # -- REST ------------------------------------------------------------------------------------

    def start_web(self) -> None:
        """Start the web process; returns when it answers."""
        self.start("web")
        until(lambda: self._is_answering() or None)

    def _is_answering(self) -> bool:
        assert self.running["web"].poll() is None, "The web process has ended."
        try:
            return self.call("GET", "/health")[0] == 200
        except OSError:
            return False

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of a request with the master key."""
        import json
        from http.client import HTTPConnection

        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            raw = None if body is None else json.dumps(body)
            headers = {**MASTER, "Content-Type": "application/json"}
            connection.request(method, f"/api{path}", raw, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def make(self, class_name: str, **fields: Any) -> str:
        """Make an object; its id."""
        status, answer = self.call("POST", f"/classes/{class_name}", fields)
        assert status == 201, answer
        return str(answer["objectId"])

    def follow(self, node: Node, *contracts: Contract, url: str | None = None, **more: Any) -> None:
        """Register a node's network, and contracts from their beginning on."""
        self.make("Blockchain", networkId=node.chain_id, rpcEndpoint=url or node.url, **more)
        self.rows("UPDATE chain_blockchain SET poll_interval = 200 RETURNING 1")
        for number, contract in enumerate(contracts):
            self.listen(contract, f"Contract{number}")

    def listen(self, contract: Contract, name: str, start: int = 0) -> None:
        self.make(
            "SmartContract",
            name=name,
            address=contract.address,
            networkId=contract.node.chain_id,
            abi=contract.abi,
            startBlock=start,
        )

    # -- The database ----------------------------------------------------------------------------

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.folder.database_url, autocommit=True) as connection:
            return connection.execute(sql, values).fetchall()  # type: ignore[arg-type]

    def value(self, sql: str, *values: Any) -> Any:
        return self.rows(sql, *values)[0][0]

    def events(self, chain_id: int) -> int:
        """How many events are stored, for a look at the progress."""
        return int(
            self.value(
                "SELECT count(*) FROM chain_contract_event WHERE network_id = %s", str(chain_id)
            )
        )

    def is_done(self, node: Node) -> bool:
        """Whether all of the node's chain has been read."""
        head = node.block()
        cursor = self.rows(
            "SELECT 1 FROM chain_cursor WHERE network_id = %s AND number = %s AND hash = %s"
            " AND planned = contracts AND halted IS NULL",
            *(node.chain_id, int(head["number"], 16), head["hash"]),
        )
        behind = self.value(
            "SELECT count(*) FROM chain_backfill WHERE network_id = %s AND done_at IS NULL",
            node.chain_id,
        )
        return bool(cursor) and behind == 0

    def said(self, chain_id: int) -> list[tuple[Any, ...]]:
        """What there is to say when it doesn't get done."""
        return self.rows(
            "SELECT number, head, trouble, halted, contracts, planned FROM chain_cursor"
            " WHERE network_id = %s",
            chain_id,
        ) + self.rows(
            "SELECT next_block, last_block, trouble, failures FROM chain_backfill"
            " WHERE network_id = %s AND done_at IS NULL",
            chain_id,
        )


@contextmanager
def installed() -> Iterator[Installation]:
    """One with an empty database and a web process; gone with everything when the block ends."""
    with temporary_folder("svc-faults-") as folder:
        installation = Installation(folder)
        installation.postgres.start()
        installation.redis.start()
        try:
            installation.manage("migrate", "--verbosity", "0")
            installation.start_web()
            yield installation
        finally:
            installation.kill_all()
            installation.redis.stop()
            installation.postgres.stop()


def until(ask: Callable[[], _T], patience: float = PATIENCE) -> _T:
    """What ``ask`` gives as soon as that is something."""
    end = time.monotonic() + patience
    while not (answer := ask()):
        assert time.monotonic() < end, "It didn't happen."
        time.sleep(_PAUSE)
    return answer
