"""Checks of transactions by several workers at once, and by some that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest
from django.db import connections

from chain import monitor
from chain.models import Transaction
from chain.rpc.pool import forget
from tests.chain.monitored import (
    follow,
    many,
    mining_by_hand,
    network,
    paid,
    read_block,
)
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied
from tests.functions.jobs.processes import until
from tests.other_process import ROOT, database_url
from tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("emptied")]


@pytest.fixture
def proxy(transactional_db: None, node: Node) -> Iterator[Proxy]:
    forget()
    with proxied(node) as proxy, mining_by_hand(node):
        network(node.chain_id, proxy.url)
        yield proxy


def elsewhere(action: partial[object]) -> None:
    """Do this in another thread, with a connection of its own, and wait for it."""

    def run() -> None:
        try:
            action()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_workers_at_once_check_each_transaction_once(proxy: Proxy, node: Node) -> None:
    count = 3000
    many(node.chain_id, count)
    checks = at_once([partial(monitor.check_due, node.chain_id)] * 4)
    assert sum(checks) == count
    assert Counter(Transaction.objects.values_list("attempts", flat=True)) == {1: count}
    assert proxy.calls["eth_getTransactionReceipt"] == count


def test_starting_a_hash_at_once_makes_one_record(proxy: Proxy, node: Node) -> None:
    sent = paid(node)
    ids = at_once([partial(monitor.start, node.chain_id, sent)] * 4)
    assert len({*ids}) == 1
    assert Transaction.objects.count() == 1


def test_a_block_that_comes_during_a_check_has_the_last_word(proxy: Proxy, node: Node) -> None:
    transaction = follow(node.chain_id, paid(node))
    height = node.mine()
    other = partial(read_block, node.chain_id, height)

    def nothing(call: object) -> None:
        elsewhere(other)

    proxy.on("eth_getTransactionReceipt", nothing, times=1)
    transaction.check()
    assert transaction.get("status", "attempts", "blockNumber") == ("confirmed", 0, height)
    assert transaction.due is None


def test_a_reorganisation_during_a_check_is_not_lost(proxy: Proxy, node: Node) -> None:
    transaction = follow(node.chain_id, paid(node))
    height = node.mine()
    read_block(node.chain_id, height)
    monitor.on_reorganisation(node.chain_id, height - 1)

    def again() -> None:
        elsewhere(partial(monitor.on_reorganisation, node.chain_id, height - 1))

    proxy.on("eth_getTransactionReceipt", faults.after(again), times=1)
    transaction.check(60)
    assert transaction.due is not None, "it is looked for once more"
    transaction.check(120)
    assert (transaction.status, transaction.due) == ("confirmed", None)


@pytest.mark.slow
def test_the_check_of_a_worker_that_dies_is_made_by_another(proxy: Proxy, node: Node) -> None:
    transaction = follow(node.chain_id, paid(node))
    request, over = threading.Event(), threading.Event()

    def hold(call: object) -> None:
        request.set()
        over.wait(60)

    proxy.on("eth_getTransactionReceipt", hold, times=1)
    worker = _worker(node.chain_id)
    try:
        assert request.wait(60)
        os.kill(worker.pid, signal.SIGKILL)
    finally:
        over.set()
        worker.kill()
        worker.wait(30)
    assert transaction.get("status", "attempts", "lastChecked") == ("pending", 0, None)
    until(lambda: transaction.check() == 1)
    assert transaction.get("status", "attempts") == ("pending", 1)


def _worker(network_id: int) -> subprocess.Popen[bytes]:
    code = (
        f"import django; django.setup(); from chain import monitor; monitor.check_due({network_id})"
    )
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PROCESS": "chain",
    }
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment)
