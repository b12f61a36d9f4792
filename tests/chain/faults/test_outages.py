"""PostgreSQL and Redis go away for a while under real workers: nothing is lost, and everything goes
on by itself (F19)."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.chain.faults.installation import Installation, until
from tests.chain.faults.test_killed_workers import assert_exact, assert_told, until_done
from tests.evm.artefacts import Contract
from tests.evm.node import running_node

pytestmark = [pytest.mark.process, pytest.mark.slow]

AWAY = 4.0
"""Seconds: more than a few looks at the chain, which are made every second here."""


@pytest.fixture
def gem(installation: Installation) -> Iterator[Contract]:
    """A contract that real workers follow, on a network of its own."""
    with running_node(7100 + installation.value("SELECT count(*) FROM chain_blockchain")) as node:
        gem = node.deployed("Gem")
        node.automine(False)
        node.mine(80)
        installation.follow(node, gem)
        installation.with_processes("chain", "backfill", "beat")
        until_done(installation, gem.node)
        yield gem


def test_postgres_goes_away_and_comes_back(installation: Installation, gem: Contract) -> None:
    mint(gem)
    installation.postgres.stop()
    mint_for_a_while(gem)
    gem.node.reorg(3)
    gem.node.mine()
    installation.postgres.start()
    mint(gem)

    until_done(installation, gem.node)
    assert_exact(installation, gem)
    assert_told(installation, gem)
    still_running(installation)


def test_redis_goes_away_and_comes_back_empty(installation: Installation, gem: Contract) -> None:
    mint(gem)
    installation.redis.stop()
    mint_for_a_while(gem)
    installation.redis.start()
    mint(gem)

    until_done(installation, gem.node)
    assert_exact(installation, gem)
    assert_told(installation, gem)
    still_running(installation)


def test_a_hanging_node_comes_back(installation: Installation, gem: Contract) -> None:
    mint(gem)
    gem.node.hang()
    time.sleep(AWAY)
    gem.node.go_on()
    mint(gem)

    until_done(installation, gem.node)
    assert_exact(installation, gem)
    still_running(installation)


def mint(gem: Contract) -> None:
    gem.transact("spam", 3, gas=500_000)
    gem.node.mine()


def mint_for_a_while(gem: Contract) -> None:
    end = time.monotonic() + AWAY
    while time.monotonic() < end:
        mint(gem)
        time.sleep(0.5)  # blocks come with time, here as elsewhere


def still_running(installation: Installation) -> None:
    """No process has ended: the launcher would end the others, too."""
    ended = [key for key, process in installation.running.items() if process.poll() is not None]
    assert not ended
    until(lambda: installation.call("GET", "/health")[0] == 200)


def test_a_network_is_followed_among_many_dead_ones(
    installation: Installation, gem: Contract
) -> None:
    """F20: most of them refuse connections, two take them and answer nothing."""
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        ports = [9] * 17 + [item.getsockname()[1] for item in silent]
        for number, port in enumerate(ports):
            url = f"http://127.0.0.1:{port}"
            installation.make("Blockchain", networkId=7200 + number, rpcEndpoint=url)
        until(
            lambda: installation.value(
                "SELECT count(*) >= 17 FROM chain_cursor WHERE trouble IS NOT NULL"
            )
        )
        for _ in range(5):
            mint(gem)
            began = time.monotonic()
            until_done(installation, gem.node)
            # A second until beat sends the next task, and room for a busy machine.
            assert time.monotonic() - began < 10
    assert_exact(installation, gem)
