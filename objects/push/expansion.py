"""From the query of a push to its targets, page by page.

A page is one transaction: the targets, the badges of their installations, and how far the query was
read. A worker that is killed leaves no half of a page. The row of the push is locked meanwhile, so
no other worker reads the same page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from backend.kernel.connections.outages import is_outage
from backend.kernel.errors import (
    InternalError,
    ObjectNotFound,
    ServiceError,
)
from backend.kernel.json_types import Json, Wire
from backend.kernel.limits.result_memory import largest_fitting
from backend.kernel.principal import MASTER
from backend.kernel.texts.encoding import encode_json
from backend.logs.setup import get_logger
from objects import service
from objects.core.names import INSTALLATION, FieldName, ObjectId
from objects.core.query.parser import parse_where
from objects.core.query.tree import FindOptions, Query, all_of
from objects.database.orm import orm_queries
from objects.push import local_times, statuses
from objects.push.adapters import setup
from objects.push.models import Push, PushTarget
from objects.push.payloads import locale_of, locales_of
from objects.push.requests import BadgeChange, PushRequest, is_badge
from objects.service.direct_writes import update_matching

PAGE: Final = 200
"""Installations that one transaction turns into targets."""
LARGEST_FIELD: Final = 4096
"""Bytes of a field of an installation that is read. Clients decide how large installations are."""
_RETRY_PAUSE: Final = timedelta(seconds=10)
_INSTALLATION_FIELDS: Final = frozenset(
    (FieldName(name),)
    for name in (
        *("deviceToken", "deviceType", "pushType", "appIdentifier"),
        *("localeIdentifier", "badge"),
    )
)

log = get_logger("push")


def encode_request(request: PushRequest) -> str:
    """Return a push as the text that its row holds."""
    return encode_json(request).decode()


def decode_request(text: str) -> PushRequest:
    """Return the push of a row."""
    fields: dict[str, Any] = msgspec.json.decode(text)
    badge, push_at = fields["badge"], fields["push_at"]
    fields["badge"] = BadgeChange(**badge) if badge else None
    fields["push_at"] = datetime.fromisoformat(push_at) if push_at else None
    return PushRequest(**fields)


def expand(push_id: str) -> bool:
    """Turn the next page of a push into targets; return whether there was one.

    A query that can't be answered fails the push; targets that were read before are still sent.
    """
    try:
        return _expand(push_id)
    except statuses.TEMPORARY_ERRORS as error:
        log.info("a push waits", push=push_id, reason=error.message)
        with orm_queries():
            waiting = Push.objects.filter(pk=push_id, state=Push.State.WAITING)
            waiting.update(due_at=Now() + _RETRY_PAUSE)
    except ServiceError as error:
        log.warning("push failed", push=push_id, reason=error.message)
        fail(push_id, error)
    except Exception as error:
        if is_outage(error):
            # The connection was lost: the sweep has the page read again.
            log.warning("a push waits", push=push_id, exc_info=error)
            return False
        log.exception("push failed", push=push_id)
        fail(push_id, InternalError("Internal server error."))
    return False


def fail(push_id: str, error: ServiceError) -> None:
    """Have no more targets of a push read, because of an error.

    Those that were read are still sent and counted; the push ends as failed after them.
    """
    with orm_queries():
        Push.objects.filter(pk=push_id, state=Push.State.WAITING).update(
            state=Push.State.SENDING, error=statuses.encode_error(error), is_published=False
        )


def _expand(push_id: str) -> bool:
    with transaction.atomic():
        with orm_queries():
            due = Push.objects.filter(pk=push_id, state=Push.State.WAITING, due_at__lte=Now())
            push = due.select_for_update(skip_locked=True, no_key=True).first()
        if push is None:
            return False
        if push.started_at is None:
            push.started_at = timezone.now()
        page = _next_page(push, decode_request(push.request))
        with orm_queries():
            PushTarget.objects.bulk_create(page.targets)
            push.pages += 1
            push.planned += len(page.targets)
            if page.last_id is None:
                _start_next_wave(push)
            else:
                push.cursor = page.last_id
            push.is_published = False
            push.save()
    return push.state == Push.State.WAITING


def _start_next_wave(push: Push) -> None:
    """Have the next wave of a push in local time read, or nothing more."""
    push.cursor = ""
    push.started_at = None
    push.state = Push.State.SENDING
    if push.is_local:
        push.wave = local_times.next_wave(push.push_at.replace(tzinfo=None), push.wave)
        if push.wave is not None:
            push.state = Push.State.WAITING
            push.due_at = local_times.moment_of(push.push_at, push.wave)


@dataclass(frozen=True, slots=True)
class _Page:
    """New targets. ``last_id`` is where the next page begins after, None after the last page."""

    targets: list[PushTarget]
    last_id: str | None


def _next_page(push: Push, request: PushRequest) -> _Page:
    """Change the badges of the next installations and return their targets, which aren't stored."""
    page = _find_installations(push, request)
    locales, expires_at = locales_of(request.data), _expires_at(push, request)
    targets = []
    for row in page.objects:
        target = _target_of(row, push, locales)
        target.expires_at = expires_at
        if target.device_token:
            if request.badge is not None:
                target.badge = _change_badge(row, request.badge)
            targets.append(target)
    return _Page(targets, page.last_id)


def _find_installations(push: Push, request: PushRequest) -> service.Page:
    """Return the next installations, without those that have a target already.

    An installation is in two waves if it changes its time zone between them.
    """
    where, requirements = parse_where(request.where), _requirements(push)

    def read(limit: int) -> service.Page:
        options = FindOptions(
            where=where, limit=limit, keys=_INSTALLATION_FIELDS, raw_where=request.where
        )
        return service.find_page(
            MASTER,
            INSTALLATION,
            options,
            after=push.cursor,
            largest_field=LARGEST_FIELD,
            also=requirements,
        )

    page, _ = largest_fitting(read, PAGE)
    ids = [str(row["objectId"]) for row in page.objects]
    with orm_queries():
        existing = push.targets.filter(installation__in=ids)
        known_ids = {*existing.values_list("installation", flat=True)}
    return replace(page, objects=[row for row in page.objects if row["objectId"] not in known_ids])


def _target_of(row: Wire, push: Push, locales: tuple[str, ...]) -> PushTarget:
    return PushTarget(
        push=push,
        installation=str(row["objectId"]),
        device_token=_text(row, "deviceToken"),
        device_type=_text(row, "deviceType"),
        push_type=setup.type_of(_text(row, "pushType"), _text(row, "deviceType")),
        app_identifier=_text(row, "appIdentifier"),
        locale=locale_of(locales, row.get("localeIdentifier")),
        utc_offset=push.wave,
        due_at=Now(),
    )


def _requirements(push: Push) -> Query:
    """Return what the push requires of installations in addition to its query."""
    has_token = parse_where({"deviceToken": {"$exists": True}})
    if push.wave is None:
        return has_token
    zones = _zones(push.push_at.replace(tzinfo=None), push.wave)
    return all_of(has_token, parse_where(zones))


def _zones(local: datetime, wave: int) -> Json:
    zones = local_times.zones_by_offset(local)
    if wave == local_times.UTC_OFFSET:
        elsewhere: list[Json] = [
            name for offset, names in zones.items() if offset != wave for name in names
        ]
        return {"timeZone": {"$nin": elsewhere}}
    return {"timeZone": {"$in": [*zones[wave]]}}


def _expires_at(push: Push, request: PushRequest) -> datetime | None:
    if request.expires_at is not None:
        return datetime.fromtimestamp(request.expires_at / 1000, push.push_at.tzinfo)
    if request.expiration_interval:
        assert push.started_at is not None, "a page of it is being read"
        return push.started_at + timedelta(seconds=request.expiration_interval)
    return None


def _change_badge(row: Wire, change: BadgeChange) -> int | float:
    """Change the badge of an installation, without triggers, and return the new one.

    A badge that no device can show is replaced. If the installation can't be changed, the push is
    sent nevertheless.
    """
    current = row.get("badge")
    badge = change.after(current)
    body: Wire = {"badge": badge}
    if change.is_increment and (current is None or is_badge(current)):
        body = {"badge": {"__op": "Increment", "amount": change.amount}}
    try:
        with transaction.atomic():
            updated = update_matching(MASTER, INSTALLATION, ObjectId(str(row["objectId"])), body)
    except statuses.TEMPORARY_ERRORS:
        raise
    except ObjectNotFound:
        return badge
    except ServiceError as error:
        log.warning("a badge wasn't changed", installation=row["objectId"], reason=error.message)
        return badge
    stored = updated.fields.get("badge")
    return stored if is_badge(stored) else badge


def _text(row: Wire, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""
