"""The task that builds and drops learned indexes."""

from __future__ import annotations

import psycopg
from celery import shared_task

from backend.kernel.errors import ServiceError, UnderMaintenance
from backend.logs.setup import get_logger
from objects.learned import schedule

log = get_logger("learned_indexes")


@shared_task(name="objects.learn_indexes", ignore_result=True)
def learn_indexes() -> None:
    """Bring the learned indexes up to date, and build at most one."""
    try:
        schedule.run()
    except UnderMaintenance:
        log.info("learned indexes wait until maintenance mode is off")
    except (ServiceError, psycopg.Error) as error:
        # A class that is removed at this moment, a database that is away: the next run does it.
        log.warning("learned indexes aren't up to date", reason=str(error))
