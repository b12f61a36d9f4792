"""The realtime processes as metrics, from what they report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import time
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from realtime.process import reports

_COUNTED: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("events_messages", "events", "messages", "Messages of the event channel."),
    ("livequery_events", "livequery", "events", "Events of live queries."),
)
_MEASURED: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("livequery_subscriptions", "livequery", "subscriptions", "Live queries that are open."),
    ("livequery_lag_seconds", "livequery", "lag", "Age of the last change when it was sent."),
    (
        "events_catching_up",
        "events",
        "catching_up",
        "Connections that are being sent missed events.",
    ),
)


def metrics() -> list[Metric]:
    """All of it, a sample for each process by its name and number. Raises ``redis.RedisError``."""
    processes = {f"{process['host']}:{process['pid']}": process for process in reports.processes()}
    return [*_of_processes(processes), *_of_parts(processes)]


def _of_processes(processes: dict[str, dict[str, Any]]) -> Iterator[Metric]:
    ready = GaugeMetricFamily(
        "svc_realtime_ready", "Whether every part of a process runs.", labels=("process",)
    )
    age = GaugeMetricFamily(
        "svc_realtime_report_age_seconds", "Seconds since a report.", labels=("process",)
    )
    for name, status in processes.items():
        ready.add_metric([name], float(status["ready"]))
        age.add_metric([name], max(0.0, time() - status["at"]))
    yield ready
    yield age
    yield _by_label(GaugeMetricFamily, "connections", "Open sockets.", "kind", processes)
    yield _by_label(CounterMetricFamily, "refused", "Handshakes refused.", "status", processes)
    yield _by_label(CounterMetricFamily, "closed", "Sockets closed by us.", "code", processes)


def _by_label(
    family: Callable[..., Any],
    name: str,
    text: str,
    label: str,
    processes: dict[str, dict[str, Any]],
) -> Metric:
    samples = family(f"svc_realtime_{name}", text, labels=("process", label))
    for process, status in processes.items():
        for value, count in status[name].items():
            samples.add_metric([process, value], count)
    metric: Metric = samples
    return metric


def _of_parts(processes: dict[str, dict[str, Any]]) -> Iterator[Metric]:
    for families, family in ((_COUNTED, CounterMetricFamily), (_MEASURED, GaugeMetricFamily)):
        for name, part, figure, text in families:
            samples = family(f"svc_{name}", text, labels=("process",))
            for process, status in processes.items():
                if part in status["parts"]:
                    samples.add_metric([process], status["parts"][part][figure])
            yield samples
    lag = GaugeMetricFamily(
        "svc_events_lag_messages",
        "Messages of the event channel still to be sent.",
        labels=("process", "network"),
    )
    for process, status in processes.items():
        for network, figures in status["parts"].get("events", {}).get("networks", {}).items():
            lag.add_metric([process, network], figures["lag"])
    yield lag
