"""``manage.py doctor``: what is wrong with this instance, and what to do about it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.kernel.doctor import Outcome, load_with, run_all
from backend.operations.checks import load_checks

_SHOWN = {"ok": "ok   ", "warn": "WARN ", "fail": "FAIL ", "skipped": "-    "}


class Command(BaseCommand):
    help = (
        "Check settings, engines, migrations, disk, clock, processes and more, and name the "
        "remedies. Ends with status 1 if a check fails; warnings aren't failures."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="say it as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        load_with(load_checks)
        outcomes = []
        for outcome in run_all():
            outcomes.append(outcome)
            if not options["json"]:
                self._show(outcome)
        levels = [finding.level for outcome in outcomes for finding in outcome.findings]
        failures, warnings = levels.count("fail"), levels.count("warn")
        if options["json"]:
            status = "fail" if failures else "warn" if warnings else "ok"
            checks = [asdict(outcome) for outcome in outcomes]
            self.stdout.write(json.dumps({"status": status, "checks": checks}, indent=1))
        else:
            self.stdout.write(f"failures: {failures}, warnings: {warnings}")
        if failures:
            raise CommandError(f"checks that failed: {failures}", returncode=1)

    def _show(self, outcome: Outcome) -> None:
        for finding in outcome.findings:
            self.stdout.write(f"{_SHOWN[finding.level]} {outcome.check}: {finding.text}")
            if finding.advice:
                self.stdout.write(f"      → {finding.advice}")
