"""The objects of ``_PushStatus``: what clients with the master key see of a push.

They are written from the rows of ``Push``. A change by the master key has no effect on the
delivery, and is overwritten by the next result. Deleting a status ends the push in the same
transaction, so that no worker claims targets of it afterwards.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import md5
from typing import Final

import msgspec
from django.db import transaction
from django.db.models import Exists, Q, QuerySet
from django.db.models.functions import Now

from backend.kernel.connections.advisory_locks import push_status
from backend.kernel.connections.outages import is_outage
from backend.kernel.errors import (
    ObjectNotFound,
    ServiceError,
    ServiceUnavailable,
    TransactionConflict,
    UnderMaintenance,
)
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import MASTER
from backend.kernel.texts.encoding import encode_json, encode_text, presentable, shortened
from backend.logs.setup import get_logger
from objects import service
from objects.core.names import PUSH_STATUS, ObjectId
from objects.core.values import wire_time
from objects.database import locks
from objects.database.orm import delete_in_batches, orm_queries
from objects.push import totals
from objects.push.adapters.base import CHUNK
from objects.push.models import Push, PushTarget
from objects.push.requests import PushRequest
from objects.rules import Change, Rules

TEMPORARY_ERRORS: Final = (ServiceUnavailable, TransactionConflict, UnderMaintenance)
PUBLISH_PAUSES: Final = (10, 60, 600, 3600, 3600, 3600)
"""Seconds between attempts to write a status. After the last it is left as it is."""
_LONGEST_MESSAGE: Final = 1000  # characters

_CANCELLATION: Final = ObjectNotFound("The status of the push was deleted.")
_BATCH_SIZE: Final = 1000  # targets

log = get_logger("push")


def encode_error(error: ServiceError) -> str:
    """Return the text in which the row of a push holds the error that ended it."""
    # Code of the deployment raises errors too, with texts that an object can't hold.
    message = presentable(shortened(error.message, _LONGEST_MESSAGE))
    return _text({"code": error.code, "message": message})


def create(request: PushRequest, source: str) -> ObjectId:
    """Store the status of a new push and return its id."""
    data = request.data
    title = request.body.get("title")
    body: Wire = {
        "pushTime": request.push_time or wire_time(datetime.now(UTC)),
        "query": _text(request.where),
        "payload": _text(data),
        "source": source,
        "status": _initial(request),
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


def behind() -> QuerySet[Push]:
    """Return the pushes whose statuses don't show all of them and are to be written now."""
    is_due = Q(publish_at=None) | Q(publish_at__lte=Now())
    return Push.objects.filter(is_due, is_published=False)


def current_status(push: Push, request: PushRequest) -> str:
    """Return the ``status`` that the object of a push has when it shows all of the row.

    A push whose object was deleted while it was under way has ``cancelled``, which no object has.
    """
    if is_cancelled(push):
        return "cancelled"
    return _progress(push) or _initial(request)


def is_cancelled(push: Push) -> bool:
    """Whether the push was ended by the deletion of its status."""
    return push.error == encode_error(_CANCELLATION)


def publish(push_id: str) -> None:
    """Write what is known of a push to its status.

    If the status was deleted, pending targets of the push are removed. In maintenance mode nothing
    is changed: a later call does it. After a failure, calls have no effect for a while.
    """
    try:
        _publish(push_id)
    except UnderMaintenance:
        log.info("the status of a push waits for the end of maintenance mode", push=push_id)
    except ServiceError as error:
        _note_failure(push_id, error.message)
    except Exception as error:
        if is_outage(error):
            raise
        log.exception("the status of a push can't be written", push=push_id)
        _note_failure(push_id, type(error).__name__)


def _note_failure(push_id: str, reason: str) -> None:
    """Have the status written again after a pause, or left as it is after the last attempt."""
    with orm_queries():
        push = Push.objects.filter(pk=push_id, is_published=False).first()
        if push is None:
            return
        is_last = push.publish_failures >= len(PUBLISH_PAUSES)
        pause = PUBLISH_PAUSES[min(push.publish_failures, len(PUBLISH_PAUSES) - 1)]
        Push.objects.filter(pk=push_id).update(
            is_published=is_last,
            publish_failures=min(push.publish_failures + 1, len(PUBLISH_PAUSES)),
            publish_at=Now() + timedelta(seconds=pause),
        )
    if is_last:
        log.error("the status of a push stays out of date", push=push_id, reason=reason)
    else:
        log.warning("the status of a push isn't up to date", push=push_id, reason=reason)


def _publish(push_id: str) -> None:
    try:
        _update_status(push_id)
    except ObjectNotFound:
        # A worker that is sending when the push is cancelled records its outcomes afterwards, so
        # the row is published once more and cancelled again.
        _finish_cancellation(push_id)


def _update_status(push_id: str) -> None:
    # A deletion locks the status before the push, so this mustn't lock the push first. Another lock
    # keeps an older state from overwriting a newer one.
    with transaction.atomic():
        locks.lock_transaction(push_status(push_id))
        with orm_queries():
            push = behind().filter(pk=push_id).first()
        if push is None:
            return
        service.update(MASTER, PUSH_STATUS, ObjectId(push_id), _fields(push))
        with orm_queries():
            unchanged = Push.objects.filter(
                pk=push_id,
                state=push.state,
                pages=push.pages,
                sent=push.sent,
                failed=push.failed,
            )
            unchanged.update(is_published=True, publish_at=None, publish_failures=0)


# -- Cancelling -----------------------------------------------------------------------------------


class StatusRules(Rules[Change]):
    """The rules of ``_PushStatus``: deleting a status cancels its push."""

    def after_delete(self, change: Change) -> None:
        _cancel(Push.objects.filter(pk=change.object_id))

    def after_purge(self) -> None:
        _cancel(Push.objects.all())


def _cancel(pushes: QuerySet[Push]) -> None:
    """End pushes whose statuses are deleted, in the transaction of the deletion.

    Their pending targets, which may be many, are removed by ``publish``.
    """
    with orm_queries():
        pushes.exclude(state=Push.State.ENDED).update(
            state=Push.State.ENDED,
            ended_at=Now(),
            error=encode_error(_CANCELLATION),
            is_published=False,
            publish_at=None,
        )


def _finish_cancellation(push_id: str) -> None:
    """Remove the pending targets of a push that is cancelled.

    Targets that are locked, since a worker records their outcomes, are left to the next call.
    """
    push = Push.objects.filter(pk=push_id)
    pending = PushTarget.objects.filter(push=push_id, state=PushTarget.State.PENDING)
    # The status may be missing for another reason than a deletion by the object service.
    _cancel(push)
    removed = delete_in_batches(pending.order_by(), _BATCH_SIZE)
    with orm_queries():
        push.filter(~Exists(pending)).update(is_published=True)
    log.info("push cancelled: its status was deleted", push=push_id, targets=removed)


# -- The fields of a status -----------------------------------------------------------------------


def _fields(push: Push) -> Wire:
    fields: Wire = {"numSent": push.sent}
    if push.failed:
        fields["numFailed"] = push.failed
    fields |= totals.as_fields(push.totals)
    status = _progress(push)
    if status is not None:
        fields["status"] = status
    if push.state == Push.State.ENDED:
        fields["count"] = {"__op": "Delete"}
        if push.error:
            error: dict[str, Json] = msgspec.json.decode(push.error)
            fields["errorMessage"] = error
    elif push.pages:
        pending = push.planned - push.sent - push.failed
        fields["count"] = -(-max(pending, 0) // CHUNK)
    return fields


def _initial(request: PushRequest) -> str:
    return "pending" if request.push_at is None else "scheduled"


def _progress(push: Push) -> str | None:
    """Return the status of a push whose targets are being read or have been; None before that."""
    if push.state == Push.State.ENDED:
        return "failed" if push.error else "succeeded"
    return "running" if push.pages else None


def _text(value: Json) -> str:
    return encode_json(value).decode()


def _hash(alert: Json) -> str:
    # Parse's identifier of equal texts; nothing is protected by it.
    text = alert if isinstance(alert, str) else _text(alert) if alert else ""
    return md5(encode_text(text), usedforsecurity=False).hexdigest()
