"""``manage.py chain_verify``: compare what is stored with the chain."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chain.management.comparison import report, run
from chain.management.contracts import add_arguments


class Command(BaseCommand):
    help = (
        "Read blocks of a network again and compare them with the events that are stored. Ends with"
        " status 1 if something differs that isn't mended. Without a range: all blocks that have"
        " been read."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser, doing="compare")
        parser.add_argument(
            "--mend",
            action="store_true",
            help="store what is missing, take out what is too much, correct what is different;"
            " subscribers are told of it where they were told of these blocks",
        )
        parser.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = run(self, options, mending=options["mend"], tell_changes=True)
        report(self, options, findings)
        if sum(findings.counts.values()) > findings.mended:
            raise CommandError("What is stored differs from the chain. --mend puts it right.")
