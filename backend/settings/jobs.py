"""Settings of jobs, from the environment."""

from __future__ import annotations

from typing import Any, Final

from backend.settings import environment
from backend.settings.conf import DEFAULTS

QUEUE: Final = "jobs"
ROUTES: dict[str, Any] = {"functions.run_job": {"queue": QUEUE}}


def service_values() -> dict[str, int]:
    """The knobs of ``backend.settings.conf`` that are about jobs."""
    limits: dict[str, dict[str, int]] = {
        "JOB_TIME_LIMIT": {"most": 30 * 86_400},
        "JOB_HEARTBEAT": {"least": 1, "most": 300},
        "JOB_STATUS_KEEP": {"most": 36_500},
    }
    return {
        name: environment.whole(name, DEFAULTS[name], **limit) for name, limit in limits.items()
    }


def beat_schedule(heartbeat: Any) -> dict[str, Any]:
    """What beat does for jobs, apart from their own schedules."""
    every = float(heartbeat)
    return {
        "tend-jobs": {
            "task": "functions.tend_jobs",
            "schedule": every,
            "options": {"expires": every},
        },
        "remove-old-job-runs": {
            "task": "functions.remove_old_job_runs",
            "schedule": 3600.0,
            "options": {"expires": 3600.0},
        },
    }
