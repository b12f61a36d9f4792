"""``manage.py jobs``: the registered jobs, when they run, and how their last runs ended."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django_celery_beat.models import PeriodicTask

from functions.jobs import schedule_rows
from functions.jobs.models import JobStatus
from functions.runtime.registry import registry
from objects.core.values import wire_time


class Command(BaseCommand):
    help = "List the registered jobs with their schedules and last runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        descriptions = [_described(name, rows) for name, rows in schedule_rows.with_jobs()]
        if options["json"]:
            self.stdout.write(json.dumps(descriptions))
            return
        if not descriptions:
            self.stdout.write("No jobs are registered: see docs/jobs.md.")
        for description in descriptions:
            self.stdout.write(_text(description))


def _described(name: str, rows: list[PeriodicTask]) -> dict[str, Any]:
    job = registry.jobs[name]
    last = JobStatus._default_manager.filter(job_name=name).order_by("-created_at").first()
    return {
        "name": name,
        "place": job.place,
        "schedules": [
            {"schedule": str(schedule_rows.timing_of(row) or "?"), "enabled": row.enabled}
            for row in rows
        ],
        "lastRun": last
        and {
            "objectId": last.object_id,
            "status": last.status,
            "createdAt": wire_time(last.created_at),
            "message": last.message,
        },
    }


def _text(description: dict[str, Any]) -> str:
    shown = [
        row["schedule"] + ("" if row["enabled"] else " (off)") for row in description["schedules"]
    ] or ["no schedule"]
    last = description["lastRun"]
    run = f"last run {last['createdAt']} {last['status']}" if last else "never run"
    if last and last["message"]:
        run += f": {last['message'].splitlines()[0][:100]}"
    return f"{description['name']}  [{', '.join(shown)}]  {run}"
