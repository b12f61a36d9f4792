"""A real Ethereum node on this machine (anvil, from npm), for as long as a test run needs it."""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend.embedded.children import before_exec

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Node:
    """A node whose first accounts have ether and need no signatures to spend it."""

    url: str
    chain_id: int

    def rpc(self, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = httpx.post(self.url, json=body, timeout=30).json()
        assert "error" not in reply, reply["error"]
        return reply["result"]

    def deploy(self, bytecode: str) -> str:
        """Put a contract on the chain; its address."""
        sender = self.rpc("eth_accounts")[0]
        sent = self.rpc("eth_sendTransaction", {"from": sender, "data": bytecode})
        receipt = self.rpc("eth_getTransactionReceipt", sent)
        assert receipt["status"] == "0x1"
        address: str = receipt["contractAddress"]
        return address


@contextmanager
def running_node(chain_id: int = 31337) -> Iterator[Node]:
    program = _program()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [program, "--host", "127.0.0.1", "--port", str(port), "--chain-id", str(chain_id)]
    process = subprocess.Popen(
        [*command, "--silent"], stdout=subprocess.DEVNULL, preexec_fn=before_exec(signal.SIGTERM)
    )
    try:
        node = Node(f"http://127.0.0.1:{port}", chain_id)
        _wait_for(node, process)
        yield node
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(node: Node, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            assert int(node.rpc("eth_chainId"), 16) == node.chain_id
            return
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > until:
                pytest.fail("anvil doesn't answer", pytrace=False)
            time.sleep(0.02)  # it has no way to say that it listens


def _program() -> str:
    """Anvil's program, of the version that package.json names, for this machine.

    Without a lock file: npm would want the programs of all other systems in it, too.
    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm not found: the tests of contract wallets need Node.js 20 or later.")
    with open(FOLDER / "package.json") as wanted:
        # Several processes of one test run may come here at once.
        fcntl.flock(wanted, fcntl.LOCK_EX)
        found = _installed()
        if found is None:
            command = [npm, "install", "--no-package-lock", "--ignore-scripts", "--no-audit"]
            done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
            found = _installed()
            if found is None:
                pytest.fail(f"npm has not installed anvil:\n{done.stderr}", pytrace=False)
    return found


def _installed() -> str | None:
    versions = set(
        json.loads((FOLDER / "package.json").read_text())["optionalDependencies"].values()
    )
    for program in FOLDER.glob("node_modules/@foundry-rs/anvil-*/bin/anvil"):
        package = json.loads((program.parents[1] / "package.json").read_text())
        if package["version"] in versions:
            return str(program)
    return None
