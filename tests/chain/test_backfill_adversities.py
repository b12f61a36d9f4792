"""History is indexed completely and once, through every concurrent change."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest
from django.db import OperationalError, connection, connections

from backend.kernel.errors import ServiceUnavailable
from chain.indexing.history.backfill import advance, plan
from chain.models import Backfill, Block, Blockchain, OutboxEntry
from tests.chain.backfills import (
    change,
    forget_contracts,
    keep_header,
    listen,
    network_of,
    on_chain,
    open_ranges,
    spam,
    stored,
)
from tests.evm.faults import before, fails, range_limit, stay_at
from tests.evm.node import Node
from tests.evm.proxy import proxied
from tests.functions.jobs.processes import Processes, until
from tests.other_process import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


def to_the_end(network_id: int) -> None:
    while open_ranges(network_id):
        Backfill.objects.update(paused_until=None)
        assert advance(network_id)


def test_a_connection_that_is_lost_in_the_middle_loses_and_doubles_nothing(node: Node) -> None:
    gem = node.deployed("Gem")
    for _ in range(30):
        spam(gem, 5)

    def end_connections() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        finally:
            connections.close_all()

    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        listen(gem)
        plan(network_id)
        Backfill.objects.update(step=4)
        proxy.on("eth_getLogs", before(end_connections), times=3)
        while open_ranges(network_id):
            try:
                to_the_end(network_id)
            except (ServiceUnavailable, OperationalError):
                connections.close_all()
    assert stored() == on_chain(node)
    assert Backfill.objects.get().events == 150


def test_a_provider_that_refuses_is_queried_again_later(node: Node) -> None:
    gem = node.deployed("Gem")
    spam(gem, 5)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        listen(gem)
        proxy.on("eth_getLogs", fails(-32601, "the method eth_getLogs is not available"))
        assert advance(network_id)
        row = Backfill.objects.get()
        assert row.trouble
        assert row.failures == 1
        assert row.paused_until is not None
        # It waits, and costs no requests meanwhile.
        proxy.forget_counts()
        assert not advance(network_id)
        assert proxy.requests == 0
        proxy.be_good()
        Backfill.objects.update(paused_until=None)
        assert advance(network_id)
        assert Backfill.objects.get().trouble is None
    assert stored() == on_chain(node)


def test_a_provider_that_is_behind_is_not_believed(node: Node) -> None:
    gem = node.deployed("Gem")
    spam(gem, 5)
    behind = node.head
    spam(gem, 5)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        stay_at(proxy, behind)
        listen(gem)
        advance(network_id)
        assert stored() == []
        assert Backfill.objects.get().trouble
        proxy.be_good()
        Backfill.objects.update(paused_until=None)
        until(lambda: advance(network_id) and Backfill.objects.get().done_at)
    assert stored() == on_chain(node)


def test_contracts_that_change_while_they_are_read_are_read_as_they_are_then(node: Node) -> None:
    gem = node.deployed("Gem")
    for _ in range(6):
        spam(gem, 5)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        contract = listen(gem)
        plan(network_id)

        def rename() -> None:
            try:
                change(contract, start_block=4)
            finally:
                connections.close_all()

        proxy.on("eth_getLogs", before(rename), times=1)
        advance(network_id)
        assert stored() == []
        while advance(network_id):
            pass
    assert {place[0] for place in stored()} == {4, 5, 6, 7}


def test_what_was_read_of_a_chain_that_is_given_up_meanwhile_is_not_stored(node: Node) -> None:
    gem = node.deployed("Gem")
    spam(gem, 5)
    node.mine(3)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        keep_header(network_id, node.block())
        listen(gem)

        def give_up() -> None:
            try:
                Block.objects.update(canonical=False)
            finally:
                connections.close_all()

        proxy.on("eth_getLogs", before(give_up))
        advance(network_id)
        assert stored() == []
        assert open_ranges(network_id) == [(0, node.head)]


def test_a_slow_answer_holds_no_one_up_who_follows(node: Node) -> None:
    """The follower commits while a range is being fetched, since no lock is held meanwhile."""
    gem = node.deployed("Gem")
    spam(gem, 5)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        listen(gem)

        def locked() -> None:
            try:
                with connection.cursor() as cursor:
                    cursor.execute("UPDATE chain_cursor SET trouble = NULL WHERE network_id > 0")
            finally:
                connections.close_all()

        proxy.on("eth_getLogs", before(locked))
        advance(network_id)
    assert stored() == on_chain(node)


@pytest.mark.slow
@pytest.mark.process
def test_a_process_that_is_killed_again_and_again_loses_and_doubles_nothing(node: Node) -> None:
    gem = node.deployed("Gem")
    for _ in range(60):
        spam(gem, 100)
    with proxied(node) as proxy:
        proxy.on("eth_getLogs", range_limit("infura", 2))
        proxy.on_request(lambda calls: threading.Event().wait(0.2))
        network_id = network_of(node, proxy.url)
        listen(gem)
        plan(network_id)
        Backfill.objects.update(step=1)
        environment = Processes("tests.cloud").environment | {"PROCESS": "manage"}
        command = [sys.executable, "manage.py", "chain_backfill", str(network_id), "--wait"]
        for expected in (500, 1500, 3000):
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            try:
                # Its output says why, should it end unexpectedly.
                until(lambda: len(stored()) >= expected or process.poll() is not None)  # noqa: B023
                assert process.poll() is None
            finally:
                process.send_signal(signal.SIGKILL)
                message, _ = process.communicate()
                print(message.decode())
        assert open_ranges(network_id)
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr
    assert stored() == on_chain(node)
    assert Backfill.objects.get().events == 6000
    assert not OutboxEntry.objects.exists()
    assert Blockchain.objects.count() == 1
    forget_contracts()
