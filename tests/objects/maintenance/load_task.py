"""A task that writes through the door without a pause, for a worker process of its own.

It says in Redis what became of each write, and ends on request.
"""

from __future__ import annotations

import json

import redis
from django.conf import settings

from backend.celery import app
from backend.kernel.errors import UnderMaintenance
from backend.kernel.principal import MASTER
from objects import service

DONE, STOP = "maintenance:done", "maintenance:stop"


@app.task(name="tests.write_without_pause")
def write_without_pause(class_name: str) -> None:
    """Each line is ``[n, accepted]``."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        n = 0
        while not client.exists(STOP):
            n += 1
            try:
                service.create(MASTER, class_name, {"writer": "worker", "n": n})
            except UnderMaintenance:
                accepted = False
            else:
                accepted = True
            client.rpush(DONE, json.dumps([n, accepted]))
