"""Reliable delivery of notifications to webhooks after saves, deletes and logins.

A notification is a row, inserted in the transaction of its event. The request sends it after the
commit, before the client gets its response, as far as its time allows; a worker sends what the
request doesn't, and retries with increasing pauses until the receiver accepts it. A sweep picks up
rows that a request, a worker or the broker has lost. Delivery is at least once, with the same
``webhook-id`` for each attempt, and not always in order.

A worker's task is for a webhook, and sends the delivery that is due first. The receiver has its
share of the lane for webhooks (``backend.tasks.lanes``), so deliveries to others don't wait for it.

Claiming a row postpones its due time in the same statement, so that no other process takes it. If
the process dies, the row becomes due again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from itertools import takewhile
from random import uniform
from time import perf_counter
from typing import Final, NamedTuple, TypeAlias

from django.db import transaction
from django.db.models.functions import Now

from backend.kernel.outgoing import Response, Unreachable, origin_of, spare_turn
from backend.kernel.request_context import current
from backend.logs.correlation import caused_by
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from backend.tasks import broker, lanes
from backend.tasks.broker import BrokerAway
from backend.tasks.registered import task
from functions.webhooks import client, payload, request_time, signatures
from functions.webhooks.models import Delivery, Hook
from functions.webhooks.responses import BadResponse, Refusal, check_received
from objects.database import hold
from objects.database.orm import orm_queries
from objects.database.statements import fetch, fetch_rows
from objects.triggers import Occasion

PAUSES: Final = (60, 120, 600, 1800, 3600, 7200, 14_400)
"""Seconds between attempts; the delivery is given up after ``ATTEMPTS``."""
ATTEMPTS: Final = len(PAUSES) + 1
_LEASES: Final = (*PAUSES, PAUSES[0])
"""Seconds for which an attempt has its row. No pause follows the last one; it has that of the
first."""
_REST: Final = 30.0  # seconds until a receiver that didn't respond is called again
_LEAST_TIME: Final = 0.5
"""Seconds that a request has to have left for an attempt. With less, an attempt would often fail
although the receiver works, and its webhook would be paused."""

# As in Parse, the client gets errors of these triggers; those of afterSave are only logged.
_GIVING_REFUSALS: Final = frozenset({"afterDelete", "afterLogin", "afterLogout"})
_Post: TypeAlias = Callable[[str, bytes, Mapping[str, str]], Response]

log = get_logger("webhooks")


class _New(NamedTuple):
    id: int
    background: bool


def enqueue(hook_id: int, trigger_name: str, occasion: Occasion) -> None:
    """Insert a delivery for a webhook in the current transaction and send it after the commit."""
    body = payload.of_notification(trigger_name, occasion).decode()
    about = f"{trigger_name} of {occasion.class_name}"
    # The client gets the error only if its own request caused the event, not server code.
    gives_refusal = trigger_name in _GIVING_REFUSALS and current().depth == 0
    with transaction.atomic():
        rows = fetch_rows(
            _New,
            "INSERT INTO functions_delivery (key, hook_id, about, body, state, attempts,"
            " last_error, created_at, due_at)"
            " SELECT %(key)s, id, %(about)s, %(body)s, 'pending', 0, '', now(), now()"
            " FROM functions_hook WHERE id = %(hook_id)s"
            " RETURNING id, (SELECT background FROM functions_hook h WHERE h.id = hook_id)",
            {"key": signatures.new_key(), "about": about, "body": body, "hook_id": hook_id},
            prepare=True,
        )
        for row in rows:
            send = (
                partial(start, hook_id)
                if row.background or not request_time.is_in_request()
                else partial(deliver_in_request, row.id, hook_id, gives_refusal=gives_refusal)
            )
            transaction.on_commit(send, robust=True)


def start(hook_id: int) -> bool:
    """Have a worker send a webhook's deliveries; return whether there is a broker. Without one the
    sweep does it later."""
    try:
        broker.send(task("functions.deliver"), hook_id, expires=300)
    except BrokerAway as error:
        log.warning("no broker; a webhook is sent later", exc_info=error)
        return False
    return True


_IS_PAUSED: Final = f"""(h.rests_until > now()
    -- A later time means that the clock was set back.
    AND h.rests_until <= now() + interval '{_REST} s')"""
# One step of the index for each webhook, however many deliveries it has. A locked row is being
# claimed.
_WITH_DUE: Final = f"""
WITH RECURSIVE hooks AS (
    SELECT min(hook_id) AS id FROM functions_delivery WHERE state = 'pending'
    UNION ALL
    SELECT (SELECT min(d.hook_id) FROM functions_delivery d
            WHERE d.state = 'pending' AND d.hook_id > hooks.id)
    FROM hooks WHERE hooks.id IS NOT NULL
)
SELECT hooks.id
FROM hooks LEFT JOIN functions_hook h ON h.id = hooks.id
CROSS JOIN LATERAL (
    SELECT FROM functions_delivery d
    WHERE d.hook_id = hooks.id AND d.state = 'pending' AND d.due_at <= now()
    ORDER BY d.due_at LIMIT 1 FOR UPDATE SKIP LOCKED
) due
WHERE {_IS_PAUSED} IS NOT TRUE
"""


def start_due() -> int:
    """Start all webhooks that have deliveries which are due, and return how many were started; none
    while deliveries are held, and no more once there is no broker."""
    if hold.is_on():
        return 0
    rows = fetch(_WITH_DUE, (), prepare=False)
    return len([*takewhile(start, (hook_id for (hook_id,) in rows))])


class _Claimed(NamedTuple):
    id: int
    key: str
    about: str
    body: str
    attempt: int
    hook_id: int
    url: str | None
    has_more: bool
    """Whether others of its webhook are due."""


def deliver(hook_id: int) -> None:
    """Send the delivery of a webhook that is due first, if its receiver has a place.

    If others are due, another task is started for them as soon as there is a place.
    """
    receiver = _receiver(hook_id)
    start_next = partial(lanes.WEBHOOKS.call_with_room, receiver, hook_id, partial(start, hook_id))
    with lanes.WEBHOOKS.place(receiver) as has_place:
        if not has_place:
            start_next()
            return
        claimed = _claim(hook_id)
        if claimed is None:
            return
        if claimed.has_more:
            start_next()
        # The delivery that is due first may be of another request than this task.
        with caused_by(payload.request_id_of(claimed.body)):
            try:
                _send(claimed, client.send)
            except Refusal as error:
                _failed(claimed, str(error))


def _receiver(hook_id: int) -> str:
    """Return the origin of a webhook's URL, or "" for a webhook that was removed."""
    with orm_queries():
        url = Hook.objects.filter(pk=hook_id).values_list("url", flat=True).first()
    return origin_of(url or "")


def deliver_in_request(delivery_id: int, hook_id: int, *, gives_refusal: bool = False) -> None:
    """Send a delivery while the client waits, or leave it to a worker.

    A worker gets it if the time of the request is used up, or if a quarter of the threads already
    wait for such webhooks. With ``gives_refusal`` the client gets the error that the webhook
    responds with, and the delivery has ended.
    """
    seconds = request_time.left_afterwards()
    with spare_turn() as has_turn:
        if seconds < _LEAST_TIME or not has_turn:
            start(hook_id)
            return
        with request_time.counted_afterwards():
            claimed = _claim(hook_id, delivery_id)
            if claimed is not None:
                _send_in_request(claimed, seconds, gives_refusal)


def _send_in_request(claimed: _Claimed, seconds: float, gives_refusal: bool) -> None:
    try:
        _send(claimed, partial(client.send, seconds=seconds))
    except Refusal as refusal:
        if gives_refusal:
            log.info(
                "a webhook's error is the response", about=claimed.about, error=refusal.message
            )
            _end(claimed.id, Delivery.State.DELIVERED, refusal.message)
            request_time.use().refusal = refusal.error()
        else:
            _failed(claimed, str(refusal))


def _send(claimed: _Claimed, post: _Post) -> None:
    """Send a delivery and store the outcome. Raises ``Refusal``."""
    if claimed.url is None:
        _give_up(claimed, "the webhook was removed")
        return
    begin = perf_counter()
    try:
        body = claimed.body.encode()
        check_received(post(claimed.url, body, signatures.headers(claimed.key, body)))
    except Unreachable as error:
        _pause(claimed.hook_id)
        _failed(claimed, str(error))
    except BadResponse as error:
        _failed(claimed, str(error))
    else:
        _end(claimed.id, Delivery.State.DELIVERED, "")
        ms = round((perf_counter() - begin) * 1000, 2)
        about, attempt = claimed.about, claimed.attempt
        log.info("webhook delivered", about=about, delivery=claimed.key, attempt=attempt, ms=ms)


# The lock is held for this statement only. Deliveries of a paused webhook stay as they are; the
# condition doesn't depend on the row, so it is evaluated once.
_CLAIM: Final = f"""
WITH due AS (
    SELECT id FROM functions_delivery d
    WHERE {{which}} AND state = 'pending' AND due_at <= now()
        AND NOT EXISTS (SELECT FROM functions_hook h WHERE h.id = %(hook_id)s AND {_IS_PAUSED})
        AND NOT {hold.IS_ON}
    ORDER BY due_at LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE functions_delivery d SET
    attempts = d.attempts + 1,
    due_at = now() + make_interval(secs => (ARRAY[{", ".join(map(str, _LEASES))}])
        [least(d.attempts + 1, {ATTEMPTS})] * %(spread)s::double precision)
FROM due WHERE d.id = due.id
RETURNING d.id, d.key, d.about, d.body, d.attempts, d.hook_id,
    (SELECT url FROM functions_hook h WHERE h.id = d.hook_id),
    EXISTS (
        SELECT FROM functions_delivery other
        WHERE other.hook_id = d.hook_id AND other.state = 'pending' AND other.due_at <= now()
            AND other.id <> d.id
    )
"""
_CLAIM_FIRST: Final = _CLAIM.format(which="hook_id = %(hook_id)s")
_CLAIM_BY_ID: Final = _CLAIM.format(which="id = %(delivery_id)s")


def _claim(hook_id: int, delivery_id: int | None = None) -> _Claimed | None:
    """Claim a delivery if it is due, or the one of a webhook that is due first."""
    values: dict[str, float] = {"hook_id": hook_id, "spread": uniform(1, 1.2)}
    statement = _CLAIM_FIRST
    if delivery_id is not None:
        values["delivery_id"] = delivery_id
        statement = _CLAIM_BY_ID
    while rows := fetch_rows(_Claimed, statement, values, prepare=True):
        (claimed,) = rows
        if claimed.attempt <= ATTEMPTS:
            return claimed
        # The worker of the last attempt has died.
        _give_up(claimed, "the last attempt wasn't finished")
    return None


def _failed(claimed: _Claimed, reason: str) -> None:
    if claimed.attempt >= ATTEMPTS:
        _give_up(claimed, reason)
        return
    log.warning(
        "webhook not delivered", about=claimed.about, attempt=claimed.attempt, reason=reason
    )
    with orm_queries():
        Delivery.objects.filter(pk=claimed.id).update(last_error=reason)


def _give_up(claimed: _Claimed, reason: str) -> None:
    log.error("webhook given up", about=claimed.about, delivery=claimed.key, reason=reason)
    _end(claimed.id, Delivery.State.DEAD, reason)


def _end(delivery_id: int, state: str, reason: str) -> None:
    with orm_queries():
        pending = Delivery.objects.filter(pk=delivery_id, state=Delivery.State.PENDING)
        pending.update(state=state, last_error=reason, ended_at=Now())


def _pause(hook_id: int) -> None:
    """Pause a webhook that doesn't respond, so it can't block every worker until its timeout."""
    with orm_queries():
        Hook.objects.filter(pk=hook_id).update(rests_until=Now() + timedelta(seconds=_REST))


def redeliver(delivery_ids: list[int]) -> int:
    """Restart these deliveries in any state, and return how many existed."""
    with orm_queries(), transaction.atomic():
        deliveries = Delivery.objects.filter(pk__in=delivery_ids)
        hook_ids = [
            *deliveries.select_for_update().order_by("pk").values_list("hook_id", flat=True)
        ]
        deliveries.update(
            state=Delivery.State.PENDING, attempts=0, due_at=Now(), ended_at=None, last_error=""
        )
        for hook_id in {*hook_ids}:
            transaction.on_commit(partial(start, hook_id), robust=True)
    return len(hook_ids)


def prune() -> int:
    """Delete deliveries that ended ``WEBHOOK_RETENTION`` days ago and return their number."""
    age = timedelta(days=service_settings.WEBHOOK_RETENTION)
    with orm_queries():
        deleted, _ = Delivery.objects.filter(ended_at__lt=Now() - age).delete()
    return deleted
