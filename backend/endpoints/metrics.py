"""``/metrics``: the service's state for Prometheus, for those who may (docs/metrics.md).

Everything is read during the request, within a few seconds: what doesn't answer is missing, and
``svc_up`` says what that is. It is off unless the setting ``METRICS`` is on.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Final

import psycopg
import redis
from django.conf import settings
from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from backend.endpoints.process_metrics import (
    of_backups,
    of_connections,
    of_deliveries,
    of_learned_indexes,
    of_pushes,
    of_queues,
    of_requests,
    of_restarts,
    of_silences,
    of_threads,
)
from backend.endpoints.wal_archive_metrics import of_wal_archive
from backend.http.context import client_address
from backend.http.exceptions import error_response
from backend.kernel import request_counts
from backend.kernel.connections.redis import asking_once
from backend.kernel.errors import CommandUnavailable, OperationForbidden, ServiceError
from backend.kernel.networks import is_in_networks
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from chain.networks.metrics import ChainCollector
from objects.database.statements import fetch
from realtime.metrics import metrics as of_sockets

_PATIENCE: Final = 3000  # milliseconds for each statement

log = get_logger("metrics")


def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics as text, in the format that the caller prefers."""
    if not service_settings.METRICS:
        return error_response(CommandUnavailable("unknown route", status=404), request)
    if not _may_read(request):
        return error_response(OperationForbidden("unauthorized", status=403), request)
    if request.method not in ("GET", "HEAD"):
        refusal = CommandUnavailable(f"method {request.method} is not allowed here", status=405)
        answer = error_response(refusal, request)
        answer.headers["Allow"] = "GET, HEAD"
        return answer
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Whole())
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    answer = HttpResponse(encode(registry), content_type=content_type)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _may_read(request: HttpRequest) -> bool:
    token = service_settings.METRICS_TOKEN
    authorization = request.headers.get("Authorization", "").encode()
    # Always compared, so that the response time reveals nothing.
    has_token = hmac.compare_digest(authorization, f"Bearer {token}".encode()) and bool(token)
    address = client_address(request.META)
    return has_token or is_in_networks(address, tuple(service_settings.METRICS_NETWORKS))


class _Whole(Collector):
    """What each part has; parts that fail are missing."""

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("svc_up", "Whether a dependency answers.", labels=("dependency",))
        for name, read in (("database", _of_database), ("redis", _of_redis)):
            try:
                metrics = read()
            except (ServiceError, DatabaseError, psycopg.Error, redis.RedisError, OSError) as error:
                log.warning("no metrics of a dependency", dependency=name, error=str(error))
                up.add_metric([name], 0)
            else:
                up.add_metric([name], 1)
                yield from metrics
        yield from of_restarts()
        yield from of_threads()
        yield up


def _of_database() -> list[Metric]:
    with transaction.atomic():
        fetch(f"SET LOCAL statement_timeout = {_PATIENCE}", (), prepare=False)
        return [
            *ChainCollector().collect(),
            *of_connections(),
            *of_learned_indexes(),
            *of_deliveries(),
            *of_pushes(),
            *of_backups(),
            *of_wal_archive(),
        ]


def _of_redis() -> list[Metric]:
    request_counts.add_up()
    with asking_once(settings.REDIS_URL, _PATIENCE / 1000) as client:
        own = [*of_queues(client), *of_silences(client), *of_requests(client)]
    return [*own, *of_sockets()]
