"""``manage.py chain_reindex``: decode events again, with the ABIs as they are now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from chain.management.comparison import report, run
from chain.management.contracts import add_arguments


class Command(BaseCommand):
    help = (
        "Read blocks again after an ABI has changed, and correct the events that are decoded"
        " otherwise now. They keep their objectId; nothing is stored twice, and subscribers aren't"
        " told again. Without a range: all blocks that have been read."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser, doing="decode")
        parser.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = run(self, options, repairing=True, notify_changes=False)
        report(self, options, findings)
