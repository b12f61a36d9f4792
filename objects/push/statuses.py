"""The objects of ``_PushStatus``: what clients with the master key see of a push.

They are written from the rows of ``Push``. A change by the master key has no effect on the
delivery, and is overwritten by the next result; deleting a status cancels what isn't sent yet.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import md5
from typing import Final

import msgspec
from django.db import transaction
from django.db.models.functions import Now

from backend.kernel.errors import ObjectNotFound, ServiceError, UnderMaintenance
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import MASTER
from backend.logs.setup import get_logger
from objects import service
from objects.core.names import PUSH_STATUS, ObjectId
from objects.core.values import wire_time
from objects.database.orm import orm_queries
from objects.push.models import Push, PushTarget
from objects.push.requests import PushRequest

CHUNK: Final = 50
"""Targets that one worker claims, sends and records at a time."""
_PER_TYPE: Final = ("sentPerType", "failedPerType", "sentPerUTCOffset", "failedPerUTCOffset")

# Rows may be published again after it: a worker that is sending records its outcomes then.
_CANCELLED: Final = ObjectNotFound("The status of the push was deleted.")

log = get_logger("push")


def encode_error(error: ServiceError) -> str:
    """Return the text in which the row of a push holds the error that ended it."""
    return _text({"code": error.code, "message": error.message})


def create(request: PushRequest, source: str) -> ObjectId:
    """Store the status of a new push and return its id."""
    data = request.data
    title = request.body.get("title")
    is_scheduled = request.push_at is not None
    body: Wire = {
        "pushTime": request.push_time or wire_time(datetime.now(UTC)),
        "query": _text(request.where),
        "payload": _text(data),
        "source": source,
        "status": "scheduled" if is_scheduled else "pending",
        "numSent": 0,
        "pushHash": _hash(data.get("alert")),
        # For the master key alone.
        "ACL": {},
    }
    optional: Wire = {
        "title": title if isinstance(title, str) else None,
        "expiry": request.expires_at,
        "expiration_interval": request.expiration_interval,
    }
    body |= {name: value for name, value in optional.items() if value is not None}
    return service.create(MASTER, PUSH_STATUS, body).object_id


def publish(push_id: str) -> None:
    """Write what is known of a push to its status.

    A status that was deleted ends the push. In maintenance mode, and while the database refuses
    writes, nothing is changed: a later call does it.
    """
    try:
        _publish(push_id)
    except UnderMaintenance:
        log.info("the status of a push waits for the end of maintenance mode", push=push_id)
    except ServiceError as error:
        log.warning("the status of a push isn't up to date", push=push_id, reason=error.message)


def _publish(push_id: str) -> None:
    with transaction.atomic():
        with orm_queries():
            push = Push.objects.select_for_update(no_key=True).filter(pk=push_id).first()
            if push is None or push.is_published:
                return
        try:
            with transaction.atomic():
                service.update(MASTER, PUSH_STATUS, ObjectId(push_id), _fields(push))
        except ObjectNotFound:
            cancel(push)
            return
        with orm_queries():
            Push.objects.filter(pk=push_id).update(is_published=True)


def cancel(push: Push) -> None:
    """End a push whose status was deleted."""
    with orm_queries():
        push.targets.filter(state=PushTarget.State.PENDING).delete()
        Push.objects.filter(pk=push.pk).update(
            state=Push.State.ENDED,
            ended_at=Now(),
            error=encode_error(_CANCELLED),
            is_published=True,
        )
    log.info("push cancelled: its status was deleted", push=push.pk)


def _fields(push: Push) -> Wire:
    fields: Wire = {"numSent": push.sent}
    if push.failed:
        fields["numFailed"] = push.failed
    fields |= {name: push.totals[name] for name in _PER_TYPE if name in push.totals}
    if push.state == Push.State.ENDED:
        fields["status"] = "failed" if push.error else "succeeded"
        fields["count"] = {"__op": "Delete"}
        if push.error:
            error: dict[str, Json] = msgspec.json.decode(push.error)
            fields["errorMessage"] = error
    elif push.pages:
        fields["status"] = "running"
        pending = push.planned - push.sent - push.failed
        fields["count"] = -(-max(pending, 0) // CHUNK)
    return fields


def _text(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _hash(alert: Json) -> str:
    # Parse's identifier of equal texts; nothing is protected by it.
    text = alert if isinstance(alert, str) else _text(alert) if alert else ""
    return md5(text.encode(), usedforsecurity=False).hexdigest()
