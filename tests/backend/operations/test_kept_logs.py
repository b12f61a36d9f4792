"""The processes of a running service keep their log records where the admin finds them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
import redis

from backend.logs.store import STREAM
from tests.backend.operations.service import PATIENCE, Service


def records(server: redis.Redis) -> Iterator[dict[str, object]]:
    """Records as they come in, until there is none for too long."""
    last = "0"
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for _, entries in server.xread({STREAM: last}, block=1000) or []:
            for _place, fields in entries:
                yield json.loads(fields[b"r"])
            last = entries[-1][0]


@pytest.mark.slow
def test_what_web_and_worker_log_is_kept(start: Callable[..., Service], folder):
    service = start(LOG_KEEP=50)
    request_id = "kept-by-the-web-process"
    service.get("/api/nowhere", {"X-Request-Id": request_id})
    expected = {("web", "request", request_id), ("worker", "ready", None)}
    with redis.Redis(unix_socket_path=str(folder.redis_socket)) as server:
        for record in records(server):
            event = str(record["event"])
            results = "ready" if event.endswith("ready.") else event
            expected.discard((str(record["process"]), results, record.get("request_id")))
            if not expected:
                break
        assert expected == set()
        # No more than asked for: Redis cuts whole nodes of a hundred off.
        assert server.xlen(STREAM) <= 150
