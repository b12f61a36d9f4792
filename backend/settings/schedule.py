"""Queues of background work, and what beat starts at which interval."""

from __future__ import annotations

from typing import Any, Final

from backend.settings.timetables import crontab_in_zone

BACK_UP: Final = "backend.back_up"
REPAIR_INDEXES: Final = "backend.repair_indexes"
VERIFY_BACKUP: Final = "backend.verify_backup"
JOBS: Final = "jobs"
CHAIN: Final = "chain"
BACKFILL: Final = "backfill"
ROUTES: Final[dict[str, Any]] = {
    "functions.run_job": {"queue": JOBS},
    # Building an index may take minutes, for which no email should have to wait.
    "objects.learn_indexes": {"queue": JOBS},
    REPAIR_INDEXES: {"queue": JOBS},
    # A backup may take hours.
    BACK_UP: {"queue": JOBS},
    VERIFY_BACKUP: {"queue": JOBS},
    "chain.backfill": {"queue": BACKFILL},
    "chain.audit": {"queue": BACKFILL},
    "chain.*": {"queue": CHAIN},
}
_EVERY: Final[dict[str, tuple[str, float]]] = {
    "beat-is-alive": ("backend.beat_is_alive", 15.0),
    "collect-minutes": ("backend.collect_minutes", 20.0),
    "run-checks": ("backend.run_checks", 900.0),
    "start-overflows": ("backend.start_overflows", 15.0),
    "remove-expired": ("objects.remove_expired", 3600.0),
    "deliver-webhooks": ("functions.deliver_due", 30.0),
    "forget-webhooks": ("functions.forget_old_deliveries", 3600.0),
    "send-due-pushes": ("objects.send_due_pushes", 10.0),
    "forget-pushes": ("objects.forget_old_pushes", 3600.0),
    "learn-indexes": ("objects.learn_indexes", 15.0),
    "follow-chains": ("chain.dispatch", 1.0),
    "finalize-chains": ("chain.finalize_all", 10.0),
    "resend-transactions": ("chain.resend_all", 15.0),
    "audit-chains": ("chain.audit_all", 300.0),
    "prune-chains": ("chain.prune", 3600.0),
    "remove-old-job-runs": ("functions.remove_old_job_runs", 3600.0),
}
"""Tasks by the names of their entries, with their intervals in seconds."""


def beat_schedule(*, job_heartbeat: float, cleans_files: bool, backups: str) -> dict[str, Any]:
    """Return Celery's schedule. A task that isn't started within its interval is dropped.

    ``backups`` is a crontab line, or empty.
    """
    entries = _EVERY | {"tend-jobs": ("functions.tend_jobs", float(job_heartbeat))}
    schedule: dict[str, Any] = {
        name: {"task": task, "schedule": seconds, "options": {"expires": seconds}}
        for name, (task, seconds) in entries.items()
    }
    if cleans_files:
        schedule["clean-files"] = {
            "task": "objects.clean_files",
            "schedule": 86_400.0,
            "options": {"expires": 43_200.0},
        }
    if backups:
        schedule["back-up"] = {
            "task": BACK_UP,
            "schedule": crontab_in_zone(backups),
            "options": {"expires": 21_600.0},
        }
    return schedule
