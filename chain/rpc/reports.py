"""How providers are, for operators and for other processes.

What a process knows of a row of ``Provider`` is written to the row, at most every few seconds; of
endpoints from settings and of public ones, to Redis. Both are only reports: nothing waits for
them, and nothing fails if they can't be written.
"""

from __future__ import annotations

from dataclasses import replace
from time import time
from typing import Any, Final

import msgspec
import redis
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import F

from backend.logs.setup import get_logger
from chain.models import Provider
from chain.rpc.client.budget import client
from chain.rpc.client.health import HEAD_FRESH, Health, ProviderHealth, moment
from chain.rpc.endpoints import Given, given_for
from chain.rpc.pool import Member, known_members

EVERY: Final = 3.0  # seconds
_SOONEST: Final = 0.5
_KEPT: Final = 86_400  # seconds, of what is in Redis
_UNREADABLE: Final = "the address can't be read: SECRET_KEY is another one"
log = get_logger("chain")


def report(member: Member) -> None:
    """Write down how a member is, if that is due: at once when it is left alone from now on, or
    isn't any more."""
    now = time()
    state = (member.health.cause, member.health.is_paused)
    due = EVERY
    if state != member.reported_state:
        due = _SOONEST if member.health.cause == "rate" else 0.0
    if now - member.reported_at < due:
        return
    member.reported_at, member.reported_state = now, state
    try:
        if member.given.row is None:
            _keep(member)
        else:
            _write(member, member.given.row)
    except (redis.RedisError, DatabaseError, OSError) as error:
        log.warning("a provider's health wasn't noted", error=type(error).__name__)


def health(network_id: int) -> list[ProviderHealth]:
    """How the network's providers are: as this process knows it or another has noted it, whichever
    is newer."""
    configured = given_for(network_id)
    noted = {row.pk: _of_row(row) for row in Provider.objects.filter(network_id=network_id)}
    stored = _kept(network_id) if any(endpoint.row is None for endpoint in configured) else {}
    mine = {
        (endpoint.given.source, endpoint.name): endpoint.health
        for endpoint in known_members(network_id)
    }
    reports = [
        _shown(
            endpoint,
            noted.get(endpoint.row or 0) or stored.get(endpoint.name),
            mine.get((endpoint.source, endpoint.name)),
        )
        for endpoint in configured
    ]
    current = [
        endpoint.head for endpoint in reports if endpoint.head is not None and _is_current(endpoint)
    ]
    best = max(current, default=None)
    return [
        replace(endpoint, lag=best - endpoint.head)
        if best is not None and endpoint.head is not None and _is_current(endpoint)
        else endpoint
        for endpoint in reports
    ]


def _is_current(report: ProviderHealth) -> bool:
    """Whether the provider's head is one that it has now: it answered in the last minute, and since
    then it hasn't failed."""
    is_recent = (
        report.checked_at is not None and time() - report.checked_at.timestamp() <= HEAD_FRESH
    )
    return is_recent and report.failures == 0


def _shown(endpoint: Given, noted: _Note | None, mine: Health | None) -> ProviderHealth:
    note = noted or _Note()
    if mine is not None and mine.changed_at > note.checked_at:
        note = _of_memory(mine)
    paused = note.paused_until if note.paused_until > time() else 0.0
    return ProviderHealth(
        endpoint.name,
        endpoint.source,
        endpoint.weight,
        head=note.head,
        latency=note.latency,
        failures=note.failures,
        paused_until=moment(paused),
        trouble=note.trouble if endpoint.url is not None else _UNREADABLE,
        checked_at=moment(note.checked_at),
    )


class _Note(msgspec.Struct, frozen=True):
    """What is written down about a provider. Times are seconds since the epoch."""

    checked_at: float = 0.0
    head: int | None = None
    latency: float | None = None
    failures: int = 0
    paused_until: float = 0.0
    trouble: str | None = None


def _of_memory(health: Health) -> _Note:
    return _Note(
        health.changed_at,
        health.head,
        health.latency,
        health.failures,
        health.paused_until if health.is_paused else 0.0,
        health.trouble,
    )


def _of_row(row: Provider) -> _Note:
    return _Note(
        row.checked_at.timestamp() if row.checked_at else 0.0,
        row.head,
        row.latency,
        row.failures,
        row.paused_until.timestamp() if row.paused_until else 0.0,
        row.trouble,
    )


def _write(member: Member, row: int) -> None:
    note = _of_memory(member.health)
    # In a transaction of the caller's, a failure here must not end it.
    with transaction.atomic():
        # Another process that writes the row knows as much, so this one doesn't wait for its lock.
        free = Provider.objects.select_for_update(skip_locked=True).filter(pk=row).order_by()
        Provider.objects.filter(pk__in=free.values("pk")).update(
            checked_at=moment(note.checked_at),
            head=F("head") if note.head is None else note.head,
            latency=note.latency,
            failures=note.failures,
            paused_until=moment(note.paused_until),
            trouble=note.trouble,
        )


def _keep(member: Member) -> None:
    key = _key(member.network_id)
    with client(settings.REDIS_URL).pipeline(transaction=False) as pipe:
        pipe.hset(key, member.name, msgspec.json.encode(_of_memory(member.health)))
        pipe.expire(key, _KEPT)
        pipe.execute()


def _kept(network_id: int) -> dict[str, _Note]:
    try:
        notes: Any = client(settings.REDIS_URL).hgetall(_key(network_id))
        return {name.decode(): _note.decode(note) for name, note in notes.items()}
    except (redis.RedisError, OSError, msgspec.DecodeError):
        return {}


_note = msgspec.json.Decoder(_Note)


def _key(network_id: int) -> str:
    return f"chain:health:{network_id}"
