"""The networks and transactions as metrics, read when they are asked for.

Each question is answered by an index or by a small table: networks, cursors, what is being looked
at. Endpoints go by their names; no address is in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from chain import rpc
from chain.networks.lag import UNKNOWN, Lag, lags
from objects.database.statements import Row, fetch

MOST_NETWORKS: Final = 200
AGES: Final = (60, 300, 900, 3600)
"""Pending transactions are counted up to each of these ages, in seconds."""

_NETWORKS = f"""
SELECT b.network_id, b.active, c.head, c.number, c.safe, c.finalized,
       extract(epoch FROM statement_timestamp() - c.moved_at), c.halted IS NOT NULL,
       COALESCE(c.outbox, 0)
  FROM chain_blockchain b LEFT JOIN chain_cursor c USING (network_id)
 WHERE b.network_id IS NOT NULL ORDER BY b.network_id LIMIT {MOST_NETWORKS}
"""
_VERIFICATION = f"""
SELECT c.network_id, c.contradictions, c.mended,
       extract(epoch FROM statement_timestamp() - c.audited_at), c.audit->>'unclear',
       (SELECT sum(r.last_block - r.next_block + 1) FROM chain_recheck r
         WHERE r.network_id = c.network_id)
  FROM chain_cursor c JOIN chain_blockchain b USING (network_id)
 WHERE b.active ORDER BY c.network_id LIMIT {MOST_NETWORKS}
"""
_LOOKED_AT = f"""
SELECT network_id, status,
       {", ".join(f"count(*) FILTER (WHERE since > now - interval '{age} s')" for age in AGES)},
       count(*), extract(epoch FROM max(now - since)), count(*) FILTER (WHERE failed_checks > 0),
       count(*) FILTER (WHERE replaced_suspected)
  FROM (SELECT network_id, status, COALESCE(pending_since, created_at) AS since, failed_checks,
               replaced_suspected, statement_timestamp() AS now
          FROM chain_transaction WHERE next_check_at IS NOT NULL) t
 GROUP BY network_id, status ORDER BY network_id, status LIMIT {MOST_NETWORKS * 4}
"""
_UNFINAL = f"""
SELECT network_id, finality, count(*) FROM chain_transaction
 WHERE finality IN ('included', 'safe') GROUP BY network_id, finality
 ORDER BY network_id, finality LIMIT {MOST_NETWORKS * 2}
"""
_REORGANISATIONS = f"""
SELECT network_id, count(*), sum(removed_events), max(depth) FROM chain_reorganisation
 GROUP BY network_id ORDER BY network_id LIMIT {MOST_NETWORKS}
"""
_BACKFILLS = f"""
SELECT network_id, count(*), sum(last_block - next_block + 1) FROM chain_backfill
 WHERE done_at IS NULL GROUP BY network_id ORDER BY network_id LIMIT {MOST_NETWORKS}
"""


class ChainCollector(Collector):
    """All of it. Raises what the database raises."""

    def collect(self) -> Iterable[Metric]:
        networks = _rows(_NETWORKS)
        yield from _networks(networks, lags())
        yield from _verification(_rows(_VERIFICATION))
        yield from _transactions(_rows(_LOOKED_AT))
        yield _by_place(
            "svc_chain_transactions_unfinal",
            "Transactions in a block that isn't final yet.",
            ("network", "finality"),
            _rows(_UNFINAL),
        )
        yield from _reorganisations(_rows(_REORGANISATIONS))
        yield from _backfills(_rows(_BACKFILLS))
        yield from _providers([int(row[0]) for row in networks if row[1] == "t"])


def _rows(sql: str) -> list[Row]:
    return fetch(sql, (), prepare=True)


def _by_place(name: str, text: str, labels: tuple[str, ...], rows: Iterable[Row]) -> Metric:
    """A gauge whose labels are the first values of the rows, and its value the next one."""
    gauge = GaugeMetricFamily(name, text, labels=labels)
    for row in rows:
        if row[len(labels)] is not None:
            gauge.add_metric([str(value) for value in row[: len(labels)]], float(row[len(labels)]))
    return gauge


def _networks(rows: list[Row], lag_by_network: dict[int, Lag]) -> Iterator[Metric]:
    texts = (
        ("active", "Whether the network is followed."),
        ("head_block", "The newest block at the last successful poll."),
        ("cursor_block", "The last block that has been read."),
        ("safe_block", "The last block that is safe."),
        ("finalized_block", "The last block that is final."),
        ("move_age_seconds", "Seconds since the last block was read."),
        ("halted", "Whether reading has stopped because the providers have another chain."),
        ("outbox_seq", "The number of the last message to subscribers."),
    )
    for place, (name, text) in enumerate(texts, 1):
        values = [(row[0], _flag(row[place])) for row in rows]
        yield _by_place(f"svc_chain_{name}", text, ("network",), values)
    lags_of_networks = [(row[0], lag_by_network.get(int(row[0] or 0), UNKNOWN)) for row in rows]
    for name, text in (
        ("lag_seconds", "Seconds since the last successful poll of the head."),
        ("look_age_seconds", "The same as lag_seconds."),
    ):
        ages = [(network, lag.seconds) for network, lag in lags_of_networks]
        yield _by_place(f"svc_chain_{name}", text, ("network",), ages)
    yield _by_place(
        "svc_chain_lag_blocks",
        "Blocks that are still to be read; absent while the head isn't known.",
        ("network",),
        [(network, lag.blocks) for network, lag in lags_of_networks],
    )


def _verification(rows: list[Row]) -> Iterator[Metric]:
    contradictions = CounterMetricFamily(
        "svc_chain_contradictions",
        "Blocks about which a provider has contradicted itself.",
        labels=("network",),
    )
    mended = CounterMetricFamily(
        "svc_chain_audit_mended_events", "Events that audits have corrected.", labels=("network",)
    )
    for network_id, contradicted, corrected, *_ in rows:
        contradictions.add_metric([str(network_id)], float(contradicted or 0))
        mended.add_metric([str(network_id)], float(corrected or 0))
    yield contradictions
    yield mended
    for place, name, text in (
        (3, "audit_age_seconds", "Seconds since an audit last came to its end."),
        (4, "audit_unclear_blocks", "Blocks that were not clear to the last audit."),
        (5, "recheck_blocks", "Blocks that are still to be compared by their receipts."),
    ):
        values = [(row[0], row[place]) for row in rows]
        yield _by_place(f"svc_chain_{name}", text, ("network",), values)


def _flag(value: str | None) -> str | None:
    return {"t": "1", "f": "0"}.get(value, value) if value is not None else None


def _transactions(rows: list[Row]) -> Iterator[Metric]:
    pending = [row for row in rows if row[1] == "pending"]
    young = GaugeMetricFamily(
        "svc_chain_transactions_pending",
        "Pending transactions up to an age in seconds.",
        labels=("network", "up_to"),
    )
    for network_id, _, *counts in pending:
        for age, number in zip((*map(str, AGES), "+Inf"), counts, strict=False):
            young.add_metric([str(network_id), age], float(number))
    yield young
    total, oldest, failed, suspected = range(2 + len(AGES), 6 + len(AGES))
    for name, text, place in (
        ("pending_oldest_seconds", "The age of the oldest pending transaction.", oldest),
        ("unanswered", "Pending transactions whose last check no node has answered.", failed),
        ("replaced_suspected", "Pending transactions that may have been replaced.", suspected),
    ):
        values = [(row[0], row[place]) for row in pending]
        yield _by_place(f"svc_chain_transactions_{name}", text, ("network",), values)
    yield _by_place(
        "svc_chain_transactions_stalled",
        "Transactions that have stalled during the last day.",
        ("network",),
        [(row[0], row[total]) for row in rows if row[1] == "stalled"],
    )


def _reorganisations(rows: list[Row]) -> Iterator[Metric]:
    counter = CounterMetricFamily(
        "svc_chain_reorganisations", "Reorganisations that were seen.", labels=("network",)
    )
    removed = CounterMetricFamily(
        "svc_chain_removed_events", "Events that reorganisations removed.", labels=("network",)
    )
    for network_id, number, events, _ in rows:
        counter.add_metric([str(network_id)], float(number))
        removed.add_metric([str(network_id)], float(events or 0))
    yield counter
    yield removed
    yield _by_place(
        "svc_chain_reorganisation_depth_max",
        "Blocks of the deepest reorganisation.",
        ("network",),
        [(row[0], row[3]) for row in rows],
    )


def _backfills(rows: list[Row]) -> Iterator[Metric]:
    yield _by_place("svc_chain_backfills_open", "Backfills under way.", ("network",), rows)
    yield _by_place(
        "svc_chain_backfill_blocks",
        "Blocks that backfills still have to read.",
        ("network",),
        [(row[0], row[2]) for row in rows],
    )


def _providers(network_ids: Iterable[int]) -> Iterator[Metric]:
    up: list[Row] = []
    heads: list[Row] = []
    lags: list[Row] = []
    latencies: list[Row] = []
    failures: list[Row] = []
    for network_id in network_ids:
        for provider in rpc.health(network_id):
            place = (network_id, provider.name)
            up.append((*place, provider.paused_until is None))
            heads.append((*place, provider.head))
            lags.append((*place, provider.lag))
            latencies.append(
                (*place, None if provider.latency is None else provider.latency / 1000)
            )
            failures.append((*place, provider.failures))
    for name, text, rows in (
        ("up", "Whether the provider is asked at the moment.", up),
        ("head_block", "The newest block that the provider has told of.", heads),
        ("lag_blocks", "Blocks that it is behind the others.", lags),
        ("latency_seconds", "How long it takes to answer, a moving average.", latencies),
        ("failures", "Failures in a row.", failures),
    ):
        yield _by_place(f"svc_chain_provider_{name}", text, ("network", "provider"), rows)
