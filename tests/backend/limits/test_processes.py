"""Approximate limits of web processes that serve one client at the same time."""

from __future__ import annotations

import http.client
import json

import pytest

from backend.limits.approximate_counts import SHARE
from tests.other_process import OtherProcess, other_process
from tests.rest import CLIENT
from tests.threads import at_once

LIMIT = 200
RULE = {"path": "/*", "per": "ip", "count": LIMIT, "window": 600, "approximate": True}


def served(process: OtherProcess, times: int) -> tuple[int, set[int]]:
    """How many of these requests were answered with 200, and the other statuses."""
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=30)
    statuses = []
    for _ in range(times):
        connection.request("GET", "/api/config", headers=CLIENT)
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    connection.close()
    return statuses.count(200), set(statuses) - {200}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_processes_share_the_limit_of_an_address():
    rules = json.dumps([RULE])
    with other_process(RATE_LIMITS=rules) as first, other_process(RATE_LIMITS=rules) as second:
        floods = [lambda: served(first, LIMIT), lambda: served(second, LIMIT)] * 2
        results = at_once(floods)
    total = sum(count for count, _ in results)
    assert LIMIT <= total <= LIMIT + 2 * LIMIT // SHARE
    assert all(other_statuses <= {429} for _, other_statuses in results)
    assert any(other_statuses for _, other_statuses in results)
