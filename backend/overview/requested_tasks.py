"""Tasks that staff have a worker do."""

from __future__ import annotations

from typing import Any

from backend.kernel.errors import ServiceUnavailable
from backend.settings.schedule import BACK_UP, JOBS
from backend.tasks import broker
from backend.tasks.broker import BrokerAway


def request(name: str, *args: Any, **options: Any) -> None:
    """Hand a task with these arguments over; ``options`` are those of Celery's ``send_task``.

    Raises ``ServiceUnavailable`` within a second or two if Redis doesn't take it.
    """
    try:
        broker.send(name, *args, **options)
    except BrokerAway as error:
        raise ServiceUnavailable(
            "Redis doesn't respond, so no worker has got the task. Try again later."
        ) from error


def request_backup() -> None:
    """Have a backup made, with a schedule or without one. Raises ``ServiceUnavailable``."""
    request(BACK_UP, queue=JOBS, kwargs={"is_requested": True})
