"""``manage.py run_job NAME``: start a job, as ``POST /jobs/NAME`` does."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from backend.kernel.principal import MASTER
from functions.jobs.models import FAILED, QUEUED, RUNNING, JobStatus
from functions.jobs.start import start

_POLL = 0.5  # seconds


class Command(BaseCommand):
    help = "Start a job in the worker for jobs, and print the id of its run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the job; script/manage jobs lists them")
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a parameter; the value is JSON, or text if it isn't JSON",
        )
        parser.add_argument("--wait", action="store_true", help="wait for its end, and say it")

    def handle(self, *args: Any, **options: Any) -> None:
        params = dict(_parameter(text) for text in options["param"])
        try:
            status_id = start(options["name"], params, source="command", principal=MASTER)
        except ServiceError as error:
            raise CommandError(error.message) from error
        self.stdout.write(status_id)
        if options["wait"]:
            self._wait(status_id)

    def _wait(self, status_id: str) -> None:
        last_message = None
        while True:
            run = JobStatus._default_manager.filter(object_id=status_id).first()
            if run is None:
                raise CommandError("The run was removed.")
            if run.status not in (QUEUED, RUNNING):
                break
            if run.message and run.message != last_message:
                last_message = run.message
                self.stdout.write(last_message)
                self.stdout.flush()
            time.sleep(_POLL)
        if run.status == FAILED:
            raise CommandError(run.error or "failed")
        if run.message and run.message != last_message:
            self.stdout.write(run.message)
        print(run.status, file=sys.stderr)


def _parameter(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise CommandError("--param: expected NAME=VALUE")
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return name, value
