"""``manage.py chain_resume``: read a halted network again."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from chain.indexing import head
from chain.indexing.head.halts import CannotResume
from chain.models import ContractEvent


class Command(BaseCommand):
    help = (
        "Decide how a halted network is read again, for when its chain really is another one: from"
        " the last block that both have, or from scratch. When a provider was wrong, reading"
        " resumes automatically within a minute after it is right or was changed; without options"
        " it resumes at once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("network", type=int, help="the network's id")
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument(
            "--unwind-to",
            type=int,
            metavar="BLOCK",
            help="revert what was read above this block, which has to be the same in both chains;"
            " subscribers receive the events above as removed",
        )
        choice.add_argument(
            "--from-scratch",
            action="store_true",
            help="revert everything that was read of the network, and read it as a new one: for a"
            " development chain that was started from scratch. Subscribers receive the events as"
            " removed, and nothing when events are read again as history: they have to read them"
            " over REST",
        )
        # The option's former name.
        choice.add_argument("--anew", dest="from_scratch", action="store_true", help=SUPPRESS)
        parser.add_argument(
            "--yes",
            action="store_true",
            help="don't ask for confirmation on a terminal",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        network_id, block = options["network"], options["unwind_to"]
        if (
            (options["from_scratch"] or block is not None)
            and not options["yes"]
            and sys.stdin.isatty()
        ):
            self._confirm(network_id, block)
        try:
            if options["from_scratch"]:
                head.index_from_scratch(network_id)
            else:
                head.resume(network_id, unwind_to=block)
        except CannotResume as reason:
            raise CommandError(str(reason)) from None
        except ServiceError as error:
            raise CommandError(error.message) from error
        where = (
            " from scratch"
            if options["from_scratch"]
            else ""
            if block is None
            else f" from block {block}"
        )
        self.stdout.write(f"Network {network_id} resumes{where}.")

    def _confirm(self, network_id: int, block: int | None) -> None:
        """Ask for the network's id, as the admin does."""
        rows = ContractEvent.objects.filter(network_id=str(network_id), canonical=True)
        if block is not None:
            rows = rows.filter(block_number__gt=block)
        where = "" if block is None else f" above block {block}"
        self.stdout.write(
            f"{rows.count():,} events of network {network_id}{where} will be reverted."
            " Subscribers receive them as removed."
        )
        if input("Enter the network's id to confirm: ").strip() != str(network_id):
            raise CommandError("Not confirmed. Nothing was changed.")
