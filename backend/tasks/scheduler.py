"""The schedule in the database, also where the machine's clock is set back.

Celery's ``crontab`` computes when an entry runs next, and django-celery-beat counts from when it
ran last. After the clock has been set back that lies in the future, and nothing would run until
then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, Final

from celery.utils.time import maybe_make_aware
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from backend.logs.setup import get_logger

_NOTICED: Final = 1.0
"""Seconds by which the clock is set back at least, for the schedule to be planned again."""

_CLEAN_UP: Final = "celery.backend_cleanup"
"""Celery's own entry."""

log = get_logger("schedule")


class Entry(ModelEntry):
    """An entry that ran last now, at the latest."""

    last_run_at: datetime

    def is_due(self) -> Any:
        now = self._default_now()
        if maybe_make_aware(self.last_run_at) > now:
            self.last_run_at = self.model.last_run_at = now
        return super().is_due()


class Scheduler(DatabaseScheduler):
    """django-celery-beat's, with such entries.

    It waits for the broker within a block of ``waiting``, which is how a process says that it isn't
    hung (``backend.kernel.process.liveness``).
    """

    Entry = Entry
    is_held: Callable[[], bool] = staticmethod(lambda: False)
    """Whether nothing but the service's own upkeep is started (``objects.database.hold``)."""
    waiting: Callable[[], AbstractContextManager[None]] = staticmethod(nullcontext)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._newest = time.time()
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        """Send what is due. Seconds until it wants to be called again."""
        now = time.time()
        if now < self._newest - _NOTICED:
            log.warning("the clock was set back", seconds=round(self._newest - now, 3))
            self._plan_again()
        self._newest = now
        return super().tick(*args, **kwargs)

    def enabled_models(self) -> list[PeriodicTask]:
        """Return the rows that count. Beat reads them again when a row or the hold changes."""
        rows: list[PeriodicTask] = super().enabled_models()
        with self.waiting():
            is_held = self.is_held()
        if not is_held:
            return rows
        upkeep = {*self.app.conf.beat_schedule, _CLEAN_UP}
        return [row for row in rows if row.name in upkeep]

    def apply_async(self, *args: Any, **kwargs: Any) -> Any:
        with self.waiting():
            return super().apply_async(*args, **kwargs)

    def _ensure_connected(self) -> Any:
        with self.waiting():
            return super()._ensure_connected()

    def _plan_again(self) -> None:
        self._heap = None
        # Changes in the admin have an earlier time from now on.
        self._last_timestamp = None
        # What is due in some hours wasn't read, and would be after the old time alone.
        self._last_full_sync = datetime.min  # noqa: DTZ901 (without a zone, as Celery's)
