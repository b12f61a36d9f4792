"""``manage.py logs``: print the stored log records that match, and new ones as they come."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from backend.logs import search, store
from backend.logs.readable import render
from backend.logs.search import LEVELS, Entry, LogFilter, LogUnavailable
from backend.management.durations import parse_duration

_FILTERS: Final = ("request_id", "level", "process", "path", "text", "status", "code")


class Command(BaseCommand):
    help = "Print the stored log records that match, the oldest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--status", type=_status, help="of responses: 403, or 4xx for a class")
        parser.add_argument("--code", type=_code, help="of errors: 119")
        parser.add_argument("--level", choices=LEVELS, help="the lowest level")
        parser.add_argument("--process", help="of this process: web, worker, …")
        parser.add_argument("--request-id", help="of this request")
        parser.add_argument("--path", help="of requests whose path contains this")
        parser.add_argument("--text", help="with this in any of their fields")
        parser.add_argument(
            "--since", type=_age, default="1h", metavar="TIME", help="90s, 15m, 1h (default), 7d"
        )
        parser.add_argument("--limit", type=int, default=1000, help="at most so many; 1000")
        parser.add_argument("--follow", action="store_true", help="go on with new records")
        parser.add_argument("--json", action="store_true", help="as JSON, one a line")

    def handle(self, *args: Any, **options: Any) -> None:
        if not store.is_on():
            raise CommandError("No log records are stored: LOG_KEEP is 0.")
        criteria = LogFilter(**{name: options[name] or "" for name in _FILTERS})
        now = datetime.now(UTC)
        try:
            entries = search.between(
                criteria,
                now - options["since"],
                now,
                limit=max(1, options["limit"]),
                most_read=sys.maxsize,  # the stream has about LOG_KEEP records
            )
            for entry in reversed(entries):
                self._print(entry, as_json=options["json"])
            if options["follow"]:
                with suppress(KeyboardInterrupt):
                    for entry in search.follow(criteria, now):
                        self._print(entry, as_json=options["json"])
        except LogUnavailable:
            raise CommandError("Redis, which stores the log records, doesn't answer.") from None

    def _print(self, entry: Entry, *, as_json: bool) -> None:
        record = {"timestamp": "", "level": "", "process": "", "event": "", **entry.fields}
        colours = self.stdout.isatty() and "NO_COLOR" not in os.environ
        text = json.dumps(entry.fields) if as_json else render(record, colours=colours)
        self.stdout.write(text)
        self.stdout.flush()


def _status(text: str) -> str:
    if not search.is_status(text):
        raise ArgumentTypeError(f"expected a status like 403 or 4xx, not {text!r}")
    return text


def _code(text: str) -> str:
    if not text.removeprefix("-").isdecimal():
        raise ArgumentTypeError(f"expected the code of an error, such as 119, not {text!r}")
    return text


def _age(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
