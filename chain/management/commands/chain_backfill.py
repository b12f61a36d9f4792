"""``manage.py chain_backfill``: read what is missing of contracts, or blocks again."""

from __future__ import annotations

import json
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from backend.kernel.errors import ServiceError
from chain.indexing import coverage
from chain.indexing.history import backfill
from chain.management.commands.chain_status import describe_backfill
from chain.management.contracts import (
    add_arguments,
    contracts_named,
    listening,
    network_read,
    range_of,
)
from chain.models import Backfill
from chain.networks import status
from objects.database import maintenance

_PAUSE = 0.5  # seconds
_SLICE = 5.0


class Command(BaseCommand):
    help = (
        "Read the past of a network's contracts. Without a range: what has not been read yet, which"
        " the service also reads on its own. With one: these blocks again; events that are"
        " stored already stay as they are."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser, doing="read")
        parser.add_argument(
            "--wait",
            action="store_true",
            help="read here, beside the workers, and return when it is done",
        )
        parser.add_argument(
            "--timeout",
            type=float,
            metavar="SECONDS",
            help="with --wait: give up after this time; the workers go on",
        )
        parser.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            ids = self._planned(options)
            if options["wait"]:
                ids += self._wait(options, ids)
        except ServiceError as error:
            raise CommandError(error.message) from error
        backfills = status.backfills(options["network"], ids)
        if options["json"]:
            self.stdout.write(json.dumps({"backfills": backfills}))
        else:
            for row in backfills:
                self.stdout.write(describe_backfill(row))
            if not backfills:
                self.stdout.write("Nothing is missing.")
        if options["wait"] and any(row["unavailable"] for row in backfills):
            raise CommandError(
                "No provider has some of the blocks, so their events are missing. Add a provider"
                " that has the whole history, or set startBlock of the contracts."
            )

    def _planned(self, options: dict[str, Any]) -> list[int]:
        """The ids of the backfills that this is about."""
        network_id, number = options["network"], network_read(options).number or 0
        named = contracts_named(options)
        with maintenance.recording(), maintenance.writing():
            if options["first"] is None and options["last"] is None:
                backfill.plan(network_id)
                rows = Backfill.objects.filter(network_id=network_id, done_at=None)
                if named is not None:
                    rows = rows.filter(address__in=named)
                return [*rows.order_by("pk").values_list("pk", flat=True)]
            first, last = range_of(options, 0, number)
            addresses = listening(network_id) if named is None else named
            return [row.pk for row in coverage.ask(network_id, addresses, first, last)]

    def _wait(self, options: dict[str, Any], ids: list[int]) -> list[int]:
        """Read until nothing is left that a provider has. Return the ids of backfills that were
        made meanwhile, of blocks that none has."""
        timeout = options["timeout"]
        end = None if timeout is None else time.monotonic() + timeout
        named = Backfill.objects.filter(pk__in=ids)
        aside = Backfill.objects.filter(
            network_id=options["network"],
            address__in=[*named.values_list("address", flat=True)],
            unavailable=True,
            done_at=None,
        )
        aside.update(paused_until=None)  # a provider may have been added just now
        rows = named.filter(Q(unavailable=False) | Q(paused_until=None), done_at=None)
        shown = ""
        while rows.exists():
            if end is not None and time.monotonic() > end:
                raise CommandError(f"Not done after {timeout:g} s; the workers go on.")
            left = _SLICE if end is None else min(_SLICE, max(0.1, end - time.monotonic()))
            if maintenance.is_chain_paused():
                raise CommandError("Recording what happens on chain is paused.")
            if not backfill.advance(options["network"], left):
                # Others are at it, a provider has to be waited for, or the follower.
                time.sleep(_PAUSE)
            now = "\n".join(map(describe_backfill, status.backfills(options["network"], ids)))
            # The end is the output of the command.
            if now != shown and not options["json"] and rows.exists():
                self.stderr.write(now)
                shown = now
        return [*aside.exclude(pk__in=ids).values_list("pk", flat=True)]
