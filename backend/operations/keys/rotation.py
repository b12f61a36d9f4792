"""Giving the instance new keys, and letting go of the old ones.

A new key counts from the next start or reload of the service on. Until then, and for as long as
``grace`` says afterwards, the old one does: the one that the service runs with, also when a key has
been rotated several times since. What was signed or encrypted under the old ``SECRET_KEY`` is read
through ``SECRET_KEY_FALLBACKS`` until ``finish`` has encrypted it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import time

from django.conf import settings

from backend.instance.keys import MAKERS
from backend.operations.keys.instance import (
    FALLBACKS,
    FORMER,
    fallbacks,
    is_given,
    keep,
    live_keys,
    present_keys,
)
from backend.settings import former_keys
from backend.settings.conf import DEFAULTS, service_settings

SECRET = "SECRET_KEY"
WORDS: Mapping[str, str] = {
    word: name
    for word, name in (
        ("master", "MASTER_KEY"),
        ("read-only", "READ_ONLY_MASTER_KEY"),
        ("maintenance", "MAINTENANCE_KEY"),
        ("rest", "REST_API_KEY"),
        ("javascript", "JAVASCRIPT_KEY"),
        ("client", "CLIENT_KEY"),
        ("webhook", "WEBHOOK_KEY"),
        ("webhook-secret", "WEBHOOK_SECRET"),
        ("secret", SECRET),
    )
    if name in DEFAULTS or name == SECRET
}
"""What an operator calls each key that can be rotated. The application id is a name, no key."""


@dataclass(frozen=True, slots=True)
class Rotated:
    """New values by setting: those that the instance keeps now, and those that have to be put
    where the environment gets them from."""

    stored: Mapping[str, str]
    to_set: Mapping[str, str]


def rotate(names: Sequence[str], grace: timedelta | None = None) -> Rotated:
    """Make new keys. ``grace`` is how long the old ones count too; a ``SECRET_KEY`` needs none."""
    now = present_keys()
    changes = {name: MAKERS[name]() for name in names}
    groups = []
    if SECRET in changes:
        old = [now[SECRET], *settings.SECRET_KEY_FALLBACKS]
        groups.append({SECRET: changes.pop(SECRET), FALLBACKS: fallbacks(old) or ""})
    graceful = {name: changes.pop(name) for name in names if grace and name in former_keys.NAMES}
    if grace and graceful:
        groups.append(graceful | {FORMER: _former(live_keys(), graceful, grace)})
    groups += [{name: value} for name, value in changes.items()]
    stored: dict[str, str] = {}
    to_set: dict[str, str] = {}
    writable: dict[str, str] = {}
    for group in groups:
        # A new key without what makes the old one count would be a gap.
        if any(is_given(name) for name in group):
            to_set |= group
        else:
            writable |= group
    left = keep(writable)
    for name, value in writable.items():
        (to_set if name in left else stored)[name] = value
    return Rotated(stored, to_set)


def _former(live: Mapping[str, str], names: Mapping[str, str], grace: timedelta) -> str:
    until = (datetime.now(UTC) + grace).timestamp()
    counting = former_keys.unexpired(service_settings.FORMER_KEYS, time())
    for name in names:
        if name in live:
            others = [item for item in counting.get(name, ()) if item[0] != live[name]]
            counting[name] = [*others, (live[name], until)]
    return former_keys.format_keys(counting)


@dataclass(frozen=True, slots=True)
class Finished:
    """How many secrets are under the present key; how many no key can read; whether
    ``SECRET_KEY_FALLBACKS`` is gone from the instance's file (else the environment has it)."""

    done: int
    unreadable: int
    dropped: bool


class NotRestarted(Exception):
    """The service runs with the keys of before."""


def finish() -> Finished:
    """Encrypt stored secrets under the present ``SECRET_KEY`` and drop the former ones.

    Raises ``NotRestarted`` where the running service doesn't know the present key yet: it couldn't
    read what this writes.
    """
    from objects.reencryption import reencrypt_all

    if settings.DATA_FOLDER.running() is not None and live_keys()[SECRET] != present_keys()[SECRET]:
        raise NotRestarted
    done = reencrypt_all()
    left = keep({FALLBACKS: None}) if settings.SECRET_KEY_FALLBACKS else []
    return Finished(done.done, done.unreadable, not left)
