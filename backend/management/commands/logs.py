"""``manage.py logs``: print the stored log records that match, and new ones as they come."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from backend.logs import search, store
from backend.logs.filters import LEVELS, LogFilter, is_status
from backend.logs.readable import render
from backend.logs.search import Entry, LogUnavailable
from backend.management.durations import parse_duration

_FILTERS: Final = {
    "status": "of responses: 403, or 4xx for a class",
    "code": "of errors: 119",
    "method": "of requests: GET",
    "route": "of requests to this route, or a part of it: /functions/{name}",
    "path": "of requests whose path contains this",
    "class_name": "about this class",
    "object_id": "about this object",
    "function": "of this function, trigger or job, or a part of its name",
    "user": "of the user with this id, or the staff user with this name",
    "key": "sent with this kind of key: master",
    "address": "from this IP address",
    "level": "the lowest level",
    "process": "of this process: web, worker, …",
    "request_id": "of this request, in all processes",
    "text": "with this in one of their texts; name=value for the field of this name",
}
"""What each filter of ``LogFilter`` selects."""


class Command(BaseCommand):
    help = "Print the stored log records that match, the oldest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        checks: dict[str, Any] = {
            "status": {"type": _status},
            "code": {"type": _code},
            "level": {"choices": LEVELS},
        }
        for name, meaning in _FILTERS.items():
            option = f"--{name.replace('_', '-')}"
            parser.add_argument(option, help=meaning, **checks.get(name, {}))
        parser.add_argument(
            "--since",
            type=_age_or_time,
            default="1h",
            metavar="TIME",
            help="90s, 15m, 1h (default), 7d ago, or a time like 2026-01-31T18:00 (UTC)",
        )
        parser.add_argument("--until", type=_age_or_time, metavar="TIME", help="now by default")
        parser.add_argument("--limit", type=int, default=1000, help="at most so many; 1000")
        parser.add_argument("--follow", action="store_true", help="go on with new records")
        parser.add_argument("--json", action="store_true", help="as JSON, one a line")

    def handle(self, *args: Any, **options: Any) -> None:
        if not store.is_on():
            raise CommandError("No log records are stored: LOG_KEEP is 0.")
        if options["follow"] and options["until"]:
            raise CommandError("--follow has no end: leave --until out.")
        criteria = LogFilter(**{name: options[name] or "" for name in _FILTERS})
        now = datetime.now(UTC)
        try:
            entries = search.between(
                criteria,
                _moment(options["since"], now),
                _moment(options["until"] or now, now),
                limit=max(1, options["limit"]),
                seconds=inf,  # the stream has about LOG_KEEP records
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
    if not is_status(text):
        raise ArgumentTypeError(f"expected a status like 403 or 4xx, not {text!r}")
    return text


def _code(text: str) -> str:
    if not text.removeprefix("-").isdecimal():
        raise ArgumentTypeError(f"expected the code of an error, such as 119, not {text!r}")
    return text


def _age_or_time(text: str) -> timedelta | datetime:
    with suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _moment(time: timedelta | datetime, now: datetime) -> datetime:
    return time if isinstance(time, datetime) else now - time
