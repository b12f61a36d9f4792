"""Web processes that are killed while they send: no action is lost or done twice, no nonce left."""

from __future__ import annotations

import contextlib
import threading
from http.client import HTTPException

import pytest

from chain.sending.signers.local import LocalSigner
from tests.chain.faults.installation import Installation, installed, until
from tests.evm.artefacts import Contract
from tests.evm.node import Node

pytestmark = [pytest.mark.slow, pytest.mark.process]

KEY = "5c" * 32
SIGNER = LocalSigner(bytes.fromhex(KEY)).address
CALLERS, KILLS = 4, 2


def test_web_processes_that_are_killed_lose_and_double_nothing(node: Node) -> None:
    node.give(SIGNER)
    gem = node.deployed("Gem")
    with installed() as made:
        made.kill("web")
        made.environment["SIGNER_PRIVATE_KEY"] = KEY
        made.environment["RATE_LIMITS"] = "off"
        made.start_web()
        made.with_processes("chain", "beat")
        made.follow(node, gem)
        answered = _calls_while_it_is_killed(made, gem)
        assert answered, "nobody was served"
        until(lambda: not made.value(_UNDER_WAY))
        rows = made.rows("SELECT nonce, hash, state FROM chain_sending ORDER BY nonce, id")
        assert [nonce for nonce, _, state in rows if state != "refused"] == [*range(len(rows))]
        assert answered <= {sent for _, sent, _ in rows}
        assert int(node.rpc("eth_getTransactionCount", SIGNER, "latest"), 16) == len(rows)
        assert gem.call("totalSupply") == len(rows), "each was done once"
        until(lambda: made.events(node.chain_id) == len(rows))


_UNDER_WAY = "SELECT count(*) FROM chain_sending WHERE state NOT IN ('mined', 'final', 'refused')"


def _calls_while_it_is_killed(made: Installation, gem: Contract) -> set[str]:
    """The hashes that callers received."""
    answered: set[str] = set()
    over = threading.Event()
    params = {
        "networkId": gem.node.chain_id,
        "contract": gem.address,
        "method": "mint",
        "args": [SIGNER],
    }

    def call() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError, HTTPException, ValueError):
                status, answer = made.call("POST", "/functions/callMethod", params)
                if status == 200:
                    answered.add(answer["result"]["transactionHash"])

    callers = [threading.Thread(target=call) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    try:
        for kill in range(KILLS):
            expected = (kill + 1) * 10
            until(lambda expected=expected: len(answered) >= expected)
            made.kill("web")
            made.start_web()
    finally:
        over.set()
        for caller in callers:
            caller.join(60)
    return answered
