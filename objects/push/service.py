"""Send a push: check it, store it, and have workers deliver it after the commit; cancel one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Literal, TypeAlias

from django.db import transaction
from django.db.models.functions import Now

from backend.kernel.errors import (
    InvalidValue,
    MasterKeyRequired,
    ObjectNotFound,
    OperationForbidden,
    ServiceError,
)
from backend.kernel.json_types import Json
from backend.kernel.principal import MASTER, Principal
from backend.logs.setup import get_logger
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from backend.tasks.registered import task
from objects import service
from objects.core.names import AUDIENCE, PUSH_STATUS, ObjectId
from objects.core.values import date, wire_time
from objects.database.orm import orm_queries
from objects.push import local_times, statuses
from objects.push.adapters import setup
from objects.push.expansion import encode_request
from objects.push.models import Push
from objects.push.requests import PushRequest, parse_push

Source: TypeAlias = Literal["rest", "function", "admin"]

log = get_logger("push")


def send(principal: Principal, body: Mapping[str, Json], *, source: Source = "rest") -> ObjectId:
    """Store a push and return the id of its ``_PushStatus``; delivery starts after the commit.

    Raises ``MasterKeyRequired``, ``OperationForbidden`` for the read-only master key, and
    ``PushMisconfigured``. A query that can't be answered fails the push later.
    """
    if not principal.is_master:
        raise MasterKeyRequired
    if not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to send push notifications.")
    now = datetime.now(UTC)
    request = parse_push(body, now)
    setup.check_configured()
    with transaction.atomic():
        push_id = statuses.create(request, source)
        push = _row(push_id, request, source, now)
        with orm_queries():
            push.save(force_insert=True)
        if request.audience_id is not None:
            _count_use(request.audience_id)
        if push.due_at <= now:
            transaction.on_commit(partial(start, push_id), robust=True)
    log.info("push accepted", push=push_id, source=source, scheduled=request.push_time)
    return push_id


def _row(push_id: str, request: PushRequest, source: str, now: datetime) -> Push:
    push_at = request.push_at or now
    wave, due_at = None, push_at
    if request.is_local:
        wave = local_times.next_wave(push_at.replace(tzinfo=None), None)
        assert wave is not None, "there is a wave for UTC"
        due_at = local_times.moment_of(push_at, wave)
    return Push(
        id=push_id,
        request=encode_request(request),
        source=source,
        push_at=push_at,
        is_local=request.is_local,
        wave=wave,
        due_at=due_at,
        created_at=Now(),
    )


def _count_use(audience_id: str) -> None:
    """Count the use of an audience. One that doesn't exist has no effect."""
    used: dict[str, Json] = {
        "lastUsed": date(wire_time(datetime.now(UTC))),
        "timesUsed": {"__op": "Increment", "amount": 1},
    }
    try:
        with transaction.atomic():
            service.update(MASTER, AUDIENCE, ObjectId(audience_id), used)
    except ObjectNotFound:
        log.info("a push names an audience that doesn't exist")
    except ServiceError as error:
        log.warning("the use of an audience isn't counted", reason=error.message)


def cancel(principal: Principal, push_id: ObjectId) -> None:
    """Cancel a push by deleting its ``_PushStatus``.

    Raises ``InvalidValue`` for a push that has ended, and ``ObjectNotFound`` for an unknown one.
    """
    with transaction.atomic():
        service.delete(principal, PUSH_STATUS, push_id)
        with orm_queries():
            push = Push.objects.filter(pk=push_id).first()
        if push is None or not statuses.is_cancelled(push):
            raise InvalidValue("The push has ended already and can't be cancelled.")


def start(push_id: str) -> None:
    """Have a worker read the targets. Without a broker ``send_due_pushes`` does it later."""
    _queue("objects.prepare_push", push_id)


def continue_sending(push_id: str, service: str | None = None) -> None:
    """Have workers send targets that are due: of one service, or of each by a task of its own."""
    for name in setup.services() if service is None else [service]:
        _queue("objects.send_push", push_id, name)


def _queue(name: str, push_id: str, *arguments: str) -> None:
    try:
        broker.send(task(name), push_id, *arguments, expires=300)
    except BrokerAway as error:
        log.warning("no broker; a push is sent later", push=push_id, exc_info=error)
