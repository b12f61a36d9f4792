"""The networks and transactions as metrics, read when they are asked for.

Each question is answered by an index or by a small table: networks, cursors, what is being looked
at. Endpoints go by their names; no address is in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db.models import Count, F, Max, Min, Q, Sum
from django.db.models.functions import Coalesce, Now
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from chain import rpc
from chain.core.transactions.states import INCLUDED, PENDING, SAFE, STALLED
from chain.models import Backfill, Blockchain, Cursor, Recheck, Reorganisation, Transaction
from chain.models.expressions import in_seconds
from chain.networks.lag import UNKNOWN, lags
from objects.database.orm import orm_queries

MOST_NETWORKS: Final = 200
AGES: Final = (60, 300, 900, 3600)
"""Pending transactions are counted up to each of these ages, in seconds."""

_BLOCKS = Sum(F("last_block") - F("next_block") + 1)
"""The blocks that rows of a network still have to read."""

_Value = float | int | bool | None
_Row = Mapping[str, Any]


class ChainCollector(Collector):
    """All of it. Raises what the database raises."""

    def collect(self) -> Iterable[Metric]:
        with orm_queries():
            networks = _networks()
            cursors = _cursors(networks)
            active = [network_id for network_id, is_active in networks.items() if is_active]
            yield from _positions(networks, cursors)
            yield from _lags(networks)
            yield from _verification([cursors[each] for each in active if each in cursors])
            yield from _transactions()
            yield _unfinal()
            yield from _reorganisations()
            yield from _backfills()
        yield from _providers(active)


def _networks() -> dict[int, bool]:
    """The networks by their numbers, and whether they are active."""
    networks = Blockchain.objects.filter(network_id__isnull=False).order_by("network_id")
    return dict(networks.values_list("network_id", "active")[:MOST_NETWORKS])


def _cursors(networks: Iterable[int]) -> dict[int, _Row]:
    rows = (
        Cursor.objects.filter(network_id__in=networks)
        .annotate(move_age=Now() - F("moved_at"), audit_age=Now() - F("audited_at"))
        .values()
    )
    return {row["network_id"]: row for row in rows}


def _gauge(
    name: str, text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[Any, ...], _Value]]
) -> Metric:
    """A gauge of values with the values of their labels; without those that are None."""
    gauge = GaugeMetricFamily(f"svc_chain_{name}", text, labels=labels)
    for places, value in values:
        if value is not None:
            gauge.add_metric([str(place) for place in places], float(value))
    return gauge


def _by_network(name: str, text: str, values: Iterable[tuple[Any, _Value]]) -> Metric:
    """A gauge of values by network."""
    return _gauge(
        name, text, ("network",), (((network_id,), value) for network_id, value in values)
    )


def _seconds(age: timedelta | None) -> float | None:
    return None if age is None else age.total_seconds()


def _positions(networks: Mapping[int, bool], cursors: Mapping[int, _Row]) -> Iterator[Metric]:
    yield _by_network("active", "Whether the network is followed.", networks.items())
    for name, text, column in (
        ("head_block", "The newest block at the last successful poll.", "head"),
        ("cursor_block", "The last block that has been read.", "number"),
        ("safe_block", "The last block that is safe.", "safe"),
        ("finalized_block", "The last block that is final.", "finalized"),
    ):
        heights = [(network_id, row[column]) for network_id, row in cursors.items()]
        yield _by_network(name, text, heights)
    yield _by_network(
        "move_age_seconds",
        "Seconds since the last block was read.",
        [(network_id, _seconds(row["move_age"])) for network_id, row in cursors.items()],
    )
    halted = {network_id for network_id, row in cursors.items() if row["halted"] is not None}
    yield _by_network(
        "halted",
        "Whether reading has stopped because the providers have another chain.",
        [(network_id, network_id in halted) for network_id in networks],
    )
    outbox = {network_id: row["outbox"] for network_id, row in cursors.items()}
    yield _by_network(
        "outbox_seq",
        "The number of the last message to subscribers.",
        [(network_id, outbox.get(network_id, 0)) for network_id in networks],
    )


def _lags(networks: Iterable[int]) -> Iterator[Metric]:
    lag_by_network = lags()
    all_lags = [(network_id, lag_by_network.get(network_id, UNKNOWN)) for network_id in networks]
    for name, text in (
        ("lag_seconds", "Seconds since the last successful poll of the head."),
        ("look_age_seconds", "The same as lag_seconds."),
    ):
        yield _by_network(name, text, [(network_id, lag.seconds) for network_id, lag in all_lags])
    yield _by_network(
        "lag_blocks",
        "Blocks that are still to be read; absent while the head isn't known.",
        [(network_id, lag.blocks) for network_id, lag in all_lags],
    )


def _verification(cursors: list[_Row]) -> Iterator[Metric]:
    contradictions = CounterMetricFamily(
        "svc_chain_contradictions",
        "Blocks about which a provider has contradicted itself.",
        labels=("network",),
    )
    mended = CounterMetricFamily(
        "svc_chain_audit_mended_events", "Events that audits have corrected.", labels=("network",)
    )
    for row in cursors:
        contradictions.add_metric([str(row["network_id"])], row["contradictions"])
        mended.add_metric([str(row["network_id"])], row["mended"])
    yield contradictions
    yield mended
    yield _by_network(
        "audit_age_seconds",
        "Seconds since an audit last came to its end.",
        [(row["network_id"], _seconds(row["audit_age"])) for row in cursors],
    )
    yield _by_network(
        "audit_unclear_blocks",
        "Blocks that were not clear to the last audit.",
        [(row["network_id"], (row["audit"] or {}).get("unclear")) for row in cursors],
    )
    rechecks = Recheck.objects.values("network_id").annotate(blocks=_BLOCKS)
    blocks = dict(rechecks.values_list("network_id", "blocks"))
    yield _by_network(
        "recheck_blocks",
        "Blocks that are still to be compared by their receipts.",
        [(row["network_id"], blocks.get(row["network_id"])) for row in cursors],
    )


def _transactions() -> Iterator[Metric]:
    younger = {f"up_to_{age}": Count("pk", filter=Q(since__gt=in_seconds(-age))) for age in AGES}
    rows = [
        *Transaction.objects.filter(next_check_at__isnull=False)
        .annotate(since=Coalesce("pending_since", "created_at"))
        .values("network_id", "status")
        .annotate(
            **younger,
            total=Count("pk"),
            oldest=Now() - Min("since"),
            unanswered=Count("pk", filter=Q(failed_checks__gt=0)),
            suspected=Count("pk", filter=Q(replaced_suspected=True)),
        )
        .order_by("network_id", "status")[: MOST_NETWORKS * 4]
    ]
    pending = [row for row in rows if row["status"] == PENDING]
    columns = {**{str(age): f"up_to_{age}" for age in AGES}, "+Inf": "total"}
    yield _gauge(
        "transactions_pending",
        "Pending transactions up to an age in seconds.",
        ("network", "up_to"),
        [
            ((row["network_id"], age), row[column])
            for row in pending
            for age, column in columns.items()
        ],
    )
    yield _by_network(
        "transactions_pending_oldest_seconds",
        "The age of the oldest pending transaction.",
        [(row["network_id"], _seconds(row["oldest"])) for row in pending],
    )
    for name, text, column in (
        ("unanswered", "Pending transactions whose last check no node has answered.", "unanswered"),
        ("replaced_suspected", "Pending transactions that may have been replaced.", "suspected"),
    ):
        numbers = [(row["network_id"], row[column]) for row in pending]
        yield _by_network(f"transactions_{name}", text, numbers)
    yield _by_network(
        "transactions_stalled",
        "Transactions that have stalled during the last day.",
        [(row["network_id"], row["total"]) for row in rows if row["status"] == STALLED],
    )


def _unfinal() -> Metric:
    counts = (
        Transaction.objects.filter(finality__in=(INCLUDED, SAFE))
        .values("network_id", "finality")
        .annotate(number=Count("pk"))
        .order_by("network_id", "finality")
        .values_list("network_id", "finality", "number")[: MOST_NETWORKS * 2]
    )
    return _gauge(
        "transactions_unfinal",
        "Transactions in a block that isn't final yet.",
        ("network", "finality"),
        [((network_id, finality), number) for network_id, finality, number in counts],
    )


def _reorganisations() -> Iterator[Metric]:
    rows = [
        *Reorganisation.objects.values("network_id")
        .annotate(number=Count("pk"), removed=Sum("removed_events"), deepest=Max("depth"))
        .order_by("network_id")[:MOST_NETWORKS]
    ]
    counter = CounterMetricFamily(
        "svc_chain_reorganisations", "Reorganisations that were seen.", labels=("network",)
    )
    removed = CounterMetricFamily(
        "svc_chain_removed_events", "Events that reorganisations removed.", labels=("network",)
    )
    for row in rows:
        counter.add_metric([str(row["network_id"])], row["number"])
        removed.add_metric([str(row["network_id"])], row["removed"])
    yield counter
    yield removed
    yield _by_network(
        "reorganisation_depth_max",
        "Blocks of the deepest reorganisation.",
        [(row["network_id"], row["deepest"]) for row in rows],
    )


def _backfills() -> Iterator[Metric]:
    rows = [
        *Backfill.objects.filter(done_at=None)
        .values("network_id")
        .annotate(number=Count("pk"), blocks=_BLOCKS, aside=Count("pk", filter=Q(unavailable=True)))
        .order_by("network_id")[:MOST_NETWORKS]
    ]
    yield _by_network(
        "backfills_open",
        "Backfills under way.",
        [(row["network_id"], row["number"]) for row in rows],
    )
    yield _by_network(
        "backfill_blocks",
        "Blocks that backfills still have to read.",
        [(row["network_id"], row["blocks"]) for row in rows],
    )
    yield _by_network(
        "backfills_unavailable",
        "Backfills of blocks that no provider has.",
        [(row["network_id"], row["aside"]) for row in rows],
    )


def _providers(network_ids: Iterable[int]) -> Iterator[Metric]:
    providers = [
        ((network_id, provider.name), provider)
        for network_id in network_ids
        for provider in rpc.health(network_id)
    ]
    labels = ("network", "provider")
    yield _gauge(
        "provider_up",
        "Whether the provider is used at the moment.",
        labels,
        [(place, provider.paused_until is None) for place, provider in providers],
    )
    yield _gauge(
        "provider_head_block",
        "The newest block that the provider has told of.",
        labels,
        [(place, provider.head) for place, provider in providers],
    )
    yield _gauge(
        "provider_lag_blocks",
        "Blocks that it is behind the others.",
        labels,
        [(place, provider.lag) for place, provider in providers],
    )
    yield _gauge(
        "provider_latency_seconds",
        "How long it takes to answer, a moving average.",
        labels,
        [
            (place, None if provider.latency is None else provider.latency / 1000)
            for place, provider in providers
        ],
    )
    yield _gauge(
        "provider_failures",
        "Failures in a row.",
        labels,
        [(place, provider.failures) for place, provider in providers],
    )
