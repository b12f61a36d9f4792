"""``manage.py maintenance on|off|status``: make the whole system read-only, and writable again."""

from __future__ import annotations

import json
from argparse import ArgumentParser, BooleanOptionalAction
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from objects.core.values import wire_time
from objects.database import maintenance
from objects.database.maintenance import State, WritersLeft

_WAIT = 60


class Command(BaseCommand):
    help = (
        "Maintenance mode: while it is on, every write is refused, and reading works. "
        '"on" returns when no write is running any more, in any process.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="on|off|status")
        on = actions.add_parser("on", help="refuse every write from now on")
        on.add_argument(
            "--message", metavar="TEXT", help=f'what is answered; "" for: {_quoted_default()}'
        )
        on.add_argument(
            "--pause-chain",
            action=BooleanOptionalAction,
            help="also stop recording what happens on chain, or go on with it",
        )
        on.add_argument(
            "--timeout",
            type=float,
            default=_WAIT,
            metavar="SECONDS",
            help=f"how long to wait for writes that began before (default: {_WAIT})",
        )
        actions.add_parser("off", help="take writes again")
        status = actions.add_parser("status", help="say whether it is on")
        status.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except ServiceError as error:
            raise CommandError(error.message) from error

    def _on(self, options: dict[str, Any]) -> None:
        if options["timeout"] < 0:
            raise CommandError("--timeout: expected seconds")
        try:
            state = maintenance.on(
                options["message"], pause_chain=options["pause_chain"], limit=options["timeout"]
            )
        except ValueError as error:
            raise CommandError(f"--message: {error}") from None
        except WritersLeft as left:
            pids = ", ".join(f"pg_terminate_backend({writer.pid})" for writer in left.writers)
            raise CommandError(
                f"Maintenance mode is on and new writes are refused, but not all is quiet. {left}"
                " Run the command again to wait for them, or end them in PostgreSQL:"
                f" SELECT {pids}"
            ) from None
        if state is None:
            raise CommandError("Somebody has switched maintenance mode off meanwhile.")
        self.stdout.write(_described(state))

    def _off(self, options: dict[str, Any]) -> None:
        was_on = maintenance.off()
        self.stdout.write(f"Maintenance mode is off.{'' if was_on else ' It was off before.'}")

    def _status(self, options: dict[str, Any]) -> None:
        state = maintenance.state()
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(state)))
        else:
            self.stdout.write("Maintenance mode is off." if state is None else _described(state))


def _quoted_default() -> str:
    return f'"{maintenance.DEFAULT_MESSAGE}"'


def _described(state: State) -> str:
    chain = "is paused" if state.chain_paused else "goes on"
    return (
        f"Maintenance mode is on since {wire_time(state.since)}.\n"
        f"Writes are refused with: {state.message}\n"
        f"Recording what happens on chain {chain}."
    )


def _as_json(state: State | None) -> dict[str, object]:
    if state is None:
        return {"on": False}
    return {
        "on": True,
        "since": wire_time(state.since),
        "message": state.message,
        "chainPaused": state.chain_paused,
    }
