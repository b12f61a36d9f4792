"""Limits of requests, what clients may do, requests that are repeated, analytics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from backend.settings import environment
from backend.settings.areas.processes import Processes
from backend.settings.declaration import Area, Setting, choice, flag, whole
from backend.settings.environment import BadSetting
from backend.settings.rate_limits import read as read_rules


def _rate_limits(name: str, default: str) -> str:
    value = environment.text(name, default)
    try:
        read_rules(value)
    except ValueError as error:
        raise BadSetting(f"{name}{'' if str(error).startswith('[') else ' '}{error}.") from None
    return value


def _idempotency_mode(name: str, default: str) -> str:
    if environment.text(name).lower() == "refuse":  # the former name of the mode
        return "reject"
    return environment.choice(name, default, ("off", "replay", "reject"))


def _patterns(name: str, default: Iterable[str]) -> tuple[str, ...]:
    patterns = tuple(environment.words(name, default))
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadSetting(f"{name} must list regular expressions: {error}.") from None
    return patterns


class Limits(Area):
    """What one client may do, and how often."""

    title = "Limits and what clients may do"

    DEFAULT_LIMIT = whole(100, "results of a query that has no limit", least=1)
    MAX_LIMIT = whole(10_000, "results of a query", least=1)
    BATCH_LIMIT = whole(100, "requests of a batch", least=1)
    INCLUDE_DEPTH = whole(10, "levels of `include`", least=1)
    INCLUDE_COUNT = whole(100, "paths of `include`", least=1)
    CLIENT_FIELD_LIMIT = whole(
        300,
        "fields that clients may add to a class, all of them together"
        " ([rest.md](rest.md#fields-that-clients-add))",
        most=2000,
    )
    CLIENT_STATEMENT_TIMEOUT = whole(
        5_000,
        "time of one database search with a client's rights; the searches of one request together"
        " have three times that. 0 leaves `STATEMENT_TIMEOUT` alone",
        unit="ms",
    )
    CLIENT_SLOW_REQUESTS = whole(
        2,
        "slow requests of one address that a web or realtime process runs at a time"
        " ([rate-limits.md](rate-limits.md#slow-requests)); 0 is no limit",
        most=512,
        derived=lambda: max(1, Processes.WEB_THREADS.read() // 2),
        shown="half of `WEB_THREADS`",
    )
    RATE_LIMITS: Setting[Any] = Setting(
        "defaults",
        "`off`, or a JSON list of [rules](rate-limits.md); by default guesses, mail and floods are"
        " limited, by address, account and user",
        _rate_limits,
    )
    IDEMPOTENCY_MODE = Setting(
        "replay",
        "requests with an id that is used again get the first response; `reject` is Parse's error"
        " 159, or `off` ([idempotency.md](idempotency.md))",
        _idempotency_mode,
        former=("IDEMPOTENCY",),
    )
    IDEMPOTENCY_PATHS: Setting[tuple[str, ...]] = Setting(
        (".*",),
        "regular expressions of the paths with such ids, separated by commas",
        _patterns,
        shown="all",
    )
    IDEMPOTENCY_TTL = whole(
        86_400, "time that an id is remembered", least=1, most=31_536_000, unit="s"
    )
    EVENT_RETENTION = whole(
        90,
        "time that events are stored ([config.md](config.md#events))",
        least=1,
        most=3650,
        unit="days",
    )
    EVENT_LIMIT = whole(1_000_000, "how many events are stored", least=1)
    ALLOW_PUBLIC_EXPLAIN = flag(
        False, "clients get plans of their queries with `explain`, without names and conditions"
    )
    ALLOW_CLIENT_CLASS_CREATION = flag(False, "clients create a class by writing its first object")
    CLASS_PERMISSIONS_DEFAULT: Setting[Literal["open", "authenticated", "closed"]] = choice(
        "open",
        ("open", "authenticated", "closed"),
        "who may use a new class that is created without permissions: everybody as with Parse,"
        " `authenticated` users, or with `closed` the master key alone"
        " ([permissions.md](permissions.md#new-classes))",
    )
    ALLOW_CUSTOM_OBJECT_ID = flag(False, "clients choose the id of a new object")
    ALLOW_ANONYMOUS_USERS = flag(False, "users sign in by `authData.anonymous`")
    ANONYMOUS_ID_LENGTH = whole(
        16,
        "characters that `authData.anonymous.id` has at least: strangers can guess shorter ids",
        least=1,
        most=255,
    )
