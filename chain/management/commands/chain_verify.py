"""``manage.py chain_verify``: compare what is stored with the chain."""

from __future__ import annotations

from argparse import SUPPRESS
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chain.management.comparison import report, run
from chain.management.contracts import add_arguments


class Command(BaseCommand):
    help = (
        "Read blocks of a network again and compare them with the events that are stored. Ends with"
        " status 1 if a difference isn't repaired. Without a range: all blocks that have"
        " been read."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser, doing="compare")
        parser.add_argument(
            "--repair",
            action="store_true",
            help="store missing events, remove surplus ones and correct those that differ;"
            " subscribers who received these blocks receive the corrections",
        )
        # The option's former name.
        parser.add_argument("--mend", dest="repair", action="store_true", help=SUPPRESS)
        parser.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = run(
            self, options, repairing=options["repair"], notify_changes=True, by_filters=True
        )
        report(self, options, findings)
        if sum(findings.counts.values()) > findings.mended:
            raise CommandError("The stored events differ from the chain. --repair corrects them.")
