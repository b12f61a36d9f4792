"""``PROFILE=small``: everything, in fewer processes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.backend.operations.mixed_load import is_whole
from tests.backend.operations.service import PATIENCE, ROOT, Service, run_manage
from tests.polling import until

Start = Callable[..., Service]
pytestmark = pytest.mark.slow


_RUN_BY_THE_ADMIN = """
from django_celery_beat.models import IntervalSchedule, PeriodicTask
every, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
PeriodicTask.objects.update_or_create(
    name="own", defaults={"task": "backend.beat_is_alive", "interval": every}
)
print(PeriodicTask.objects.get(name="own").total_run_count)
"""


def test_a_small_instance_keeps_the_schedule_of_the_admin(start: Start) -> None:
    service = start(PROFILE="small")

    def has_run() -> bool:
        done = run_manage("shell", "-v", "0", "-c", _RUN_BY_THE_ADMIN, DATA_DIR=service.data)
        return int(done.stdout) > 0

    until(has_run, PATIENCE)
    assert not list(ROOT.glob("celerybeat*"))


def test_a_small_instance_does_everything_in_four_processes(start: Start) -> None:
    service = start(PROFILE="small")
    until(lambda: is_whole(service), PATIENCE)
    application = service.child("backend.serve")
    names = sorted(process.name() for process in application.children(recursive=True))
    assert names == ["svc-jobs", "svc-realtime", "svc-web", "svc-worker"]
    before = service.processes_of("worker")
    min(before, key=lambda process: process.pid).kill()
    until(lambda: service.is_replaced("worker", before), PATIENCE)
    until(lambda: is_whole(service), PATIENCE)
