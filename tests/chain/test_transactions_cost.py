"""What following many transactions asks of a node: bounded numbers of calls and requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from chain import monitor, rpc
from chain.core.node import Header
from chain.models import Blockchain, Transaction
from chain.rpc.pool import forget
from tests.chain.monitored import follow, many, mining_by_hand, network, paid, read_block
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied
from tests.statements import traffic

pytestmark = pytest.mark.django_db

COUNT = 1000


@pytest.fixture
def proxy(db: None, node: Node) -> Iterator[Proxy]:
    forget()
    with proxied(node) as proxy, mining_by_hand(node):
        network(node.chain_id, proxy.url)
        many(node.chain_id, COUNT)
        yield proxy


def receipts_in(proxy: Proxy) -> tuple[int, int, int]:
    """Requests, calls for receipts, and calls for transactions since it was last asked."""
    calls = proxy.calls
    results = (
        proxy.requests - calls["eth_chainId"],
        calls["eth_getTransactionReceipt"],
        calls["eth_getTransactionByHash"],
    )
    proxy.forget_counts()
    return results


@pytest.mark.parametrize("attempts", [0, 1, 2, 3, 8, 9, 10])
def test_a_check_of_many_is_a_request_for_each_hundred(
    proxy: Proxy, node: Node, attempts: int
) -> None:
    looks = attempts < 2 or attempts % 8 == 1
    Transaction.objects.update(attempts=attempts, nonce=None if attempts < 2 else 1)
    assert monitor.check_due(node.chain_id) == COUNT
    assert receipts_in(proxy) == (
        COUNT // 100 * (1 + looks),
        COUNT,
        COUNT if looks else 0,
    )
    assert not Transaction.objects.exclude(attempts=attempts + 1).exists()


def test_a_check_and_what_nodes_say_is_one_write_of_each_row(proxy: Proxy, node: Node) -> None:
    before = _statistic("n_tup_upd")
    assert monitor.check_due(node.chain_id) == COUNT
    assert Transaction.objects.filter(attempts=1, missing_checks=1).count() == COUNT
    assert _statistic("n_tup_upd") - before == COUNT


def test_a_block_is_one_statement_and_at_most_one_request(proxy: Proxy, node: Node) -> None:
    mine = [follow(node.chain_id, paid(node, place)) for place in (0, 1, 2)]
    height = node.mine()
    headers: list[Header] = rpc.attempt(
        node.chain_id,
        lambda request: [header for header in request.headers([height]) if header is not None],
    )
    empty = Header(headers[0].number, headers[0].hash, headers[0].parent_hash)
    receipts_in(proxy)

    def receipts_of(block: Header) -> monitor.Seen:
        return rpc.attempt(
            node.chain_id, lambda request: monitor.receipts_for(node.chain_id, [block], request)
        )

    assert not receipts_of(empty).found
    assert receipts_in(proxy) == (0, 0, 0)
    results = receipts_of(headers[0])
    assert receipts_in(proxy) == (1, 3, 0)
    with traffic() as sent:
        assert monitor.record(results) == 3
    assert sent.executions == 2
    assert {header.status for header in mine} == {"confirmed"}


def test_an_empty_network_costs_nothing(node: Node, db: None) -> None:
    forget()
    with proxied(node) as proxy:
        network(node.chain_id, proxy.url)
        assert monitor.check_due(node.chain_id) == 0
        assert monitor.finalize(node.chain_id) == 0
        assert proxy.requests == 0


def test_nothing_reads_the_whole_table(node: Node, db: None) -> None:
    """However many transactions are done with."""
    forget()
    network(node.chain_id, node.url)
    Blockchain.objects.update(finality_depth=1)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO chain_transaction (object_id, created_at, updated_at, data, hash, status,"
            " network_id, finality, block_number, block_hash) SELECT 'done' || n, now(), now(),"
            " '{}', 'h' || n, 'confirmed', %s, 'finalized', n, 'b' || n"
            " FROM generate_series(1, 20000) n",
            [str(node.chain_id)],
        )
        cursor.execute("ANALYZE chain_transaction")
    with mining_by_hand(node):
        for _ in range(7):  # by then statements have their generic plans
            before = _statistic("seq_scan")
            transaction = follow(node.chain_id, paid(node))
            transaction.check()
            height = node.mine()
            assert read_block(node.chain_id, height) == 1
            monitor.on_reorganisation(node.chain_id, height - 1)
            transaction.check(60)
            node.mine()
            assert monitor.finalize(node.chain_id) == 1
            assert _statistic("seq_scan") == before


def _statistic(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {name} FROM pg_stat_xact_user_tables WHERE relname = 'chain_transaction'"
        )
        return int(cursor.fetchone()[0])
