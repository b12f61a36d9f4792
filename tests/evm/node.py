"""A real Ethereum node on this machine (anvil, from npm), for as long as it is needed.

Without pytest, since the benchmark uses it as well.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import urllib3

from backend.kernel.process.children import before_exec
from tests.evm.artefacts import Contract, put
from tests.ports import free_port

FOLDER = Path(__file__).resolve().parent
_PATIENCE = 30  # seconds


class NodeError(AssertionError):
    """The node answered with an error; ``code`` and ``message`` are the node's."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.message: str = error["message"]


class Node:
    """A node whose first accounts have ether and need no signatures to spend it.

    It mines a block with each transaction, and sending returns when the block is there. Tests of
    reorganisations and rollbacks switch that off (``automine(False)``) and mine themselves: anvil
    loses blocks when both happen at once.
    """

    def __init__(self, port: int, chain_id: int, command: Sequence[str]) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.socket_url = f"ws://127.0.0.1:{port}"
        self.chain_id = chain_id
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._mines_by_itself = True
        self._pool = urllib3.PoolManager(maxsize=8, block=False, retries=False, timeout=60)

    # -- The process ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, with the chain that it had when it was stopped."""
        self._mines_by_itself = True
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, preexec_fn=before_exec(signal.SIGTERM)
        )
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                assert int(self.rpc("eth_chainId"), 16) == self.chain_id
                return
            except urllib3.exceptions.HTTPError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("anvil doesn't answer") from None
                time.sleep(0.02)  # it has no way to say that it listens

    def stop(self) -> None:
        """Stop it; the chain is kept for the next start. What it had not mined is lost."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        self._process.wait(_PATIENCE)

    def kill(self) -> None:
        """Stop it permanently."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_PATIENCE)
        self._pool.clear()

    def hang(self) -> None:
        """Let it take connections and requests, and answer none."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        # On a busy machine a thread may answer for a while yet.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def go_on(self) -> None:
        """End of ``hang``."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def reset(self, patience: float = 20) -> None:
        """Empty the chain, but for its height; blocks are mined with each transaction again. Anvil
        may be stuck when it mined at the same moment: after so many seconds it is restarted."""
        try:
            self._forget_all(patience)
        except urllib3.exceptions.HTTPError:
            self.kill()
            self.start()
            self._forget_all(_PATIENCE)

    def _forget_all(self, seconds: float) -> None:
        self.rpc("anvil_reset", seconds=seconds)
        self.automine(True)

    # -- Asking --------------------------------------------------------------------------------

    def rpc(self, method: str, *params: Any, seconds: float = 60) -> Any:
        """The result of a call; ``NodeError`` for an error."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = self._pool.request("POST", self.url, json=body, timeout=seconds).json()
        if "error" in reply:
            raise NodeError(reply["error"])
        return reply["result"]

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """The results of calls in one request, none of which may fail."""
        body = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, params) in enumerate(calls)
        ]
        replies = self._pool.request("POST", self.url, json=body).json()
        return [reply["result"] for reply in sorted(replies, key=lambda reply: int(reply["id"]))]

    @cached_property
    def accounts(self) -> list[str]:
        response: list[str] = self.rpc("eth_accounts")
        return response

    @property
    def head(self) -> int:
        """The number of the newest block."""
        return int(self.rpc("eth_blockNumber"), 16)

    def block(self, number: int | str = "latest") -> dict[str, Any]:
        """A block with the hashes of its transactions."""
        which = hex(number) if isinstance(number, int) else number
        response: dict[str, Any] = self.rpc("eth_getBlockByNumber", which, False)
        return response

    def logs(
        self, first: int = 0, last: int | None = None, **expected: Any
    ) -> list[dict[str, Any]]:
        """The logs of the chain as it is; by default all of them."""
        to = "latest" if last is None else hex(last)
        query = {"fromBlock": hex(first), "toBlock": to, **expected}
        response: list[dict[str, Any]] = self.rpc("eth_getLogs", query)
        return response

    def receipt(self, sent: str) -> dict[str, Any] | None:
        response: dict[str, Any] | None = self.rpc("eth_getTransactionReceipt", sent)
        return response

    def mined(self, sent: str) -> dict[str, Any]:
        """The receipt of a transaction, once it is in a block."""
        until = time.monotonic() + _PATIENCE
        while (receipt := self.receipt(sent)) is None:
            assert time.monotonic() < until, f"{sent} is not mined"
            time.sleep(0.005)  # it has no way to say that there is a block
        return receipt

    # -- Sending -------------------------------------------------------------------------------

    def send(self, transaction: dict[str, Any]) -> str:
        """Send a transaction of one of the node's accounts; its hash. Numbers may be numbers."""
        request = {
            name: hex(value) if isinstance(value, int) else value
            for name, value in transaction.items()
        }
        return self._sent(self.rpc("eth_sendTransaction", request))

    def send_raw(self, signed: str) -> str:
        """Send a signed transaction (see ``signed``); its hash."""
        return self._sent(self.rpc("eth_sendRawTransaction", signed))

    def _sent(self, sent: str) -> str:
        if self._mines_by_itself:
            self.mined(sent)  # anvil answers before it has made the block
        return sent

    def signed(self, key: str, transaction: dict[str, Any]) -> str:
        """A transaction signed with a private key, to be sent as often as one likes. What it
        doesn't say is filled in: nonce, gas, fees, chain."""
        # Not before Django is set up, which is after this module was imported by a conftest.
        from chain.rpc.web3_library import eth_account

        account = eth_account().Account.from_key(key)
        full = {
            "nonce": int(self.rpc("eth_getTransactionCount", account.address, "pending"), 16),
            "gas": 1_000_000,
            "maxFeePerGas": 100 * 10**9,
            "maxPriorityFeePerGas": 10**9,
            "value": 0,
            "data": "0x",
            "chainId": self.chain_id,
            "type": 2,
            **{name: value for name, value in transaction.items() if name != "from"},
        }
        return "0x" + bytes(account.sign_transaction(full).raw_transaction).hex()

    def give(self, address: str, wei: int = 10**21) -> None:
        """Let an account have so much ether."""
        self.rpc("anvil_setBalance", address, hex(wei))

    def drop(self, sent: str) -> None:
        """Forget a transaction that is not mined."""
        self.rpc("anvil_dropTransaction", sent)

    def deploy(self, bytecode: str) -> str:
        """Put bytecode on the chain; the contract's address."""
        receipt = self.mined(self.send({"from": self.accounts[0], "data": bytecode}))
        assert receipt["status"] == "0x1"
        address: str = receipt["contractAddress"]
        return address

    def deployed(self, name: str, *arguments: Any, sender: str | None = None) -> Contract:
        """Put a contract of ``tests/evm/contracts`` on the chain."""
        return put(self, name, *arguments, sender=sender)

    # -- The chain -----------------------------------------------------------------------------

    def mine(self, count: int = 1, *, seconds_apart: int | None = None) -> int:
        """Mine so many blocks; the new head."""
        more = [] if seconds_apart is None else [hex(seconds_apart)]
        self.rpc("anvil_mine", hex(count), *more)
        return self.head

    def automine(self, on: bool) -> None:
        """Whether each transaction gets a block at once."""
        self.rpc("evm_setAutomine", on)
        self._mines_by_itself = on

    def reorg(self, depth: int, replacements: Sequence[tuple[dict[str, Any], int]] = ()) -> None:
        """Exchange the newest blocks for others of the same number. They hold nothing but the
        ``replacements``: transactions (``Contract.request``) with the place of their block among
        the new ones, from 0 on. What the old ones held is not known to the node any more."""
        before = hex(self.head - depth)
        nonces: dict[str, int] = {}
        pairs = []
        for request, place in sorted(replacements, key=lambda item: item[1]):
            sender = request["from"]
            if sender not in nonces:
                # Anvil itself would go on from the nonces of the blocks that go away.
                nonces[sender] = int(self.rpc("eth_getTransactionCount", sender, before), 16)
            pairs.append([{"gas": hex(2_000_000), "nonce": hex(nonces[sender]), **request}, place])
            nonces[sender] += 1
        self.rpc("anvil_reorg", depth, pairs)

    def rollback(self, depth: int) -> None:
        """Take the newest blocks away."""
        self.rpc("anvil_rollback", depth)

    def snapshot(self) -> str:
        """Something to ``revert`` to, once. Lost by ``reorg``."""
        taken: str = self.rpc("evm_snapshot")
        return taken

    def revert(self, taken: str) -> None:
        assert self.rpc("evm_revert", taken) is True


@contextmanager
def running_node(chain_id: int = 31337, *options: str) -> Iterator[Node]:
    """A node with a chain of its own; ``options`` are anvil's."""
    program = _program()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
        where = ("--host", "127.0.0.1", "--port", str(port), "--state", f"{folder}/state.json")
        command = [program, *where, "--chain-id", str(chain_id), "--silent", *options]
        node = Node(port, chain_id, command)
        node.start()
        try:
            yield node
        finally:
            node.kill()


def _program() -> str:
    """Anvil's program, of the version that package.json names, for this machine.

    Without a lock file: npm would want the programs of all other systems in it, too.
    """
    npm = shutil.which("npm")
    if npm is None:
        # Which pytest takes for a reason to skip.
        raise unittest.SkipTest("npm not found: a chain needs Node.js 20 or later.")
    with open(FOLDER / "package.json") as stream:
        # Several processes of one test run may come here at once.
        fcntl.flock(stream, fcntl.LOCK_EX)
        results = _installed()
        if results is None:
            command = [npm, "install", "--no-package-lock", "--ignore-scripts", "--no-audit"]
            done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
            results = _installed()
            if results is None:
                raise RuntimeError(f"npm has not installed anvil:\n{done.stderr}")
    return results


def _installed() -> str | None:
    versions = set(
        json.loads((FOLDER / "package.json").read_text())["optionalDependencies"].values()
    )
    for program in FOLDER.glob("node_modules/@foundry-rs/anvil-*/bin/anvil"):
        package = json.loads((program.parents[1] / "package.json").read_text())
        if package["version"] in versions:
            return str(program)
    return None
