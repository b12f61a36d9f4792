"""``manage.py chain_resume``: read a halted network again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.errors import ServiceError
from chain import following
from chain.following.halting import CannotResume


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
            help="take back what was read above this block, which has to be the same in both"
            " chains; the events above are told to subscribers as removed",
        )
        choice.add_argument(
            "--anew",
            action="store_true",
            help="take back everything that was read of the network, and read it as a new one: for"
            " a development chain that was thrown away",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        network_id, block = options["network"], options["unwind_to"]
        try:
            if options["anew"]:
                following.begin_anew(network_id)
            else:
                following.resume(network_id, unwind_to=block)
        except CannotResume as reason:
            raise CommandError(str(reason)) from None
        except ServiceError as error:
            raise CommandError(error.message) from error
        where = " anew" if options["anew"] else "" if block is None else f" from block {block}"
        self.stdout.write(f"Network {network_id} goes on{where}.")
