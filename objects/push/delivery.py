"""Reliable delivery of pushes to their targets, by any number of workers.

A worker claims a chunk of targets by moving their next attempts ahead in one transaction, sends
them, and records each outcome. The claim is a lease: targets of a worker that was killed are due
again when it ends. Those of its last chunk may have been sent, so they may be sent a second time;
both carry the same identifiers, by which devices show them once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import uniform
from time import monotonic, time
from typing import Final, NamedTuple

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now

from backend.kernel.connections.advisory_locks import push_sender
from backend.kernel.interruptions import is_from_outside
from backend.kernel.texts.encoding import presentable
from backend.logs.setup import get_logger
from objects.database import hold, locks, maintenance
from objects.database.orm import orm_queries
from objects.push import dead_tokens, local_times, statuses, totals
from objects.push.adapters import setup
from objects.push.adapters.base import (
    CHUNK,
    CHUNK_WAIT,
    INTERNAL_ERROR,
    Adapter,
    Message,
    Outcome,
    Result,
    failed,
)
from objects.push.expansion import decode_request
from objects.push.models import Push, PushTarget
from objects.push.payloads import payload_for
from objects.push.requests import PushRequest

PAUSES: Final = (5, 30, 120, 600, 1800)
"""Seconds between attempts; a target has failed after ``ATTEMPTS``."""
ATTEMPTS: Final = len(PAUSES) + 1
LEASE: Final = timedelta(seconds=4 * CHUNK_WAIT)
"""For sending a chunk, which takes at most ``CHUNK_WAIT``, and recording its outcomes."""
SENDERS: Final = 4
"""Tasks that send a push to one service at the same time."""
_PUBLISH_PAUSE: Final = 1.0  # seconds
TURN: Final = 15.0
"""Seconds after which a task lets other tasks go first."""
_MAX_PUSHES_PER_SWEEP: Final = 200
_STATES: Final = {
    Result.SENT: PushTarget.State.SENT,
    Result.FAILED: PushTarget.State.FAILED,
    Result.GONE: PushTarget.State.GONE,
}

log = get_logger("push")


def send(push_id: str, service: str) -> bool:
    """Send targets of a service that are due, for ``TURN`` seconds; return whether more may be due
    now.

    Sends nothing in maintenance mode and in a held instance, nor while ``SENDERS`` others send the
    push to this service.
    """
    for number in range(SENDERS):
        with locks.try_held(push_sender(push_id, service, number)) as is_free:
            if is_free:
                return _send(push_id, service)
    return False


def _send(push_id: str, service: str) -> bool:
    end = monotonic() + TURN
    published_at = 0.0
    with orm_queries():
        push = Push.objects.filter(pk=push_id).first()
    if push is None or push.state == Push.State.ENDED:
        statuses.publish(push_id)
        return False
    request = decode_request(push.request)
    is_more = True
    with closing(Sender(service)) as sender:
        while is_more and monotonic() < end:
            if hold.is_on() or maintenance.state() is not None:
                return False
            targets = _claim(push_id, service)
            if targets:
                _record(push, targets, sender.send(push_id, request, targets))
            if targets and monotonic() - published_at > _PUBLISH_PAUSE:
                statuses.publish(push_id)
                published_at = monotonic()
            is_more = len(targets) == CHUNK
    if not finish(push_id):
        statuses.publish(push_id)
    return is_more


def _claim(push_id: str, service: str) -> list[PushTarget]:
    """Claim targets of a service that are due; locked ones are being claimed by another worker.

    After the commit of a cancellation none are claimed, so at most the chunks that were claimed
    before are still sent.
    """
    with orm_queries(), transaction.atomic():
        due = PushTarget.objects.filter(
            setup.is_of(service), push_id=push_id, state=PushTarget.State.PENDING, due_at__lte=Now()
        ).exclude(push__state=Push.State.ENDED)
        free = due.select_for_update(of=("self",), skip_locked=True).order_by("due_at", "id")
        ids = [*free.values_list("pk", flat=True)[:CHUNK]]
        claimed = PushTarget.objects.filter(pk__in=ids)
        claimed.update(attempts=F("attempts") + 1, due_at=Now() + LEASE)
        return [*claimed.order_by("id")]


# -- Sending --------------------------------------------------------------------------------------


class Sender:
    """The adapter of one task, with the event loop that it runs in."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._runner = asyncio.Runner()
        self._adapter: Adapter | None = None

    def close(self) -> None:
        """Close connections and the event loop."""
        try:
            if self._adapter is not None:
                self._runner.run(self._adapter.close())
        except BaseException as problem:
            if is_from_outside(problem):
                raise
            # Connections that are broken already: the outcomes are recorded.
            log.info("connections weren't closed", error=type(problem).__name__)
        finally:
            self._runner.close()

    def send(
        self, push_id: str, request: PushRequest, targets: Sequence[PushTarget]
    ) -> list[Outcome]:
        """Send to targets of the service and return the outcomes, in order."""
        now = time()
        outcomes: dict[int, Outcome] = {}
        to_send: list[PushTarget] = []
        for target in targets:
            if target.attempts > ATTEMPTS:
                outcomes[target.pk] = failed("the last attempt wasn't finished")
            elif target.expires_at is not None and target.expires_at.timestamp() <= now:
                outcomes[target.pk] = failed("expired before it could be sent")
            elif setup.adapter_of(target.push_type) is None:
                outcomes[target.pk] = failed("no adapter for this type of device")
            else:
                to_send.append(target)
        if to_send:
            messages = [_message(push_id, request, target, now) for target in to_send]
            results = self._runner.run(self._send(messages))
            for target, outcome in zip(to_send, results, strict=True):
                outcomes[target.pk] = outcome
        return [outcomes[target.pk] for target in targets]

    async def _send(self, messages: Sequence[Message]) -> list[Outcome]:
        try:
            if self._adapter is None:
                self._adapter = setup.make(self._service)
            outcomes = await self._adapter.send(messages)
            return [_storable(outcome) for _, outcome in zip(messages, outcomes, strict=True)]
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) or is_from_outside(error):
                raise
            # An adapter's own error would otherwise be repeated by all workers without end.
            log.error("an adapter of pushes failed", adapter=self._service, exc_info=error)
            return [INTERNAL_ERROR] * len(messages)


def _storable(outcome: Outcome) -> Outcome:
    reason = presentable(outcome.reason)
    return outcome if reason == outcome.reason else replace(outcome, reason=reason)


def _message(push_id: str, request: PushRequest, target: PushTarget, now: float) -> Message:
    change = request.badge
    badge = target.badge if change is not None and change.is_increment else None
    return Message(
        push_id=push_id,
        installation=target.installation,
        device_token=target.device_token,
        device_type=target.device_type,
        app_identifier=target.app_identifier,
        body=payload_for(request.body, target.locale, badge),
        expires_at=None if target.expires_at is None else int(target.expires_at.timestamp()),
        sent_at=now,
    )


# -- Outcomes -------------------------------------------------------------------------------------


class _Group(NamedTuple):
    """Targets whose outcomes are counted under the same keys."""

    state: str
    device_type: str
    utc_offset: int | None


def _record(push: Push, targets: Sequence[PushTarget], outcomes: Sequence[Outcome]) -> None:
    """Store outcomes and add them to the push. An outcome that is stored already stays."""
    final: dict[_Group, list[PushTarget]] = defaultdict(list)
    reasons: dict[int, str] = {}
    gone: list[PushTarget] = []
    with orm_queries(), transaction.atomic():
        row = Push.objects.select_for_update(no_key=True).filter(pk=push.pk).first()
        if row is None:
            return
        for target, outcome in zip(targets, outcomes, strict=True):
            reasons[target.pk] = outcome.reason
            if outcome.result is Result.LATER and target.attempts < ATTEMPTS:
                _postpone(target, outcome)
                continue
            state = _STATES.get(outcome.result, PushTarget.State.FAILED)
            final[_Group(state, target.device_type, target.utc_offset)].append(target)
            if state == PushTarget.State.GONE:
                gone.append(target)
        for group, members in final.items():
            _add(row, group, _store(group.state, members, reasons))
        row.is_published = False
        row.save(update_fields=("sent", "failed", "totals", "is_published"))
    _report(push.pk, targets, outcomes)
    dead_tokens.remove(gone)


def _postpone(target: PushTarget, outcome: Outcome) -> None:
    pause = PAUSES[target.attempts - 1] * uniform(1, 1.2)
    seconds = max(pause, outcome.pause or 0)
    # Another worker may have claimed it since, and decides then.
    PushTarget.objects.filter(
        pk=target.pk, state=PushTarget.State.PENDING, attempts=target.attempts
    ).update(due_at=Now() + timedelta(seconds=seconds), error=outcome.reason)


def _store(state: str, members: Iterable[PushTarget], reasons: dict[int, str]) -> int:
    """Store the state of targets that have none yet; return how many these are."""
    by_reason: dict[str, list[int]] = defaultdict(list)
    for target in members:
        by_reason[reasons[target.pk]].append(target.pk)
    return sum(
        PushTarget.objects.filter(pk__in=ids, state=PushTarget.State.PENDING).update(
            state=state, error=reason
        )
        for reason, ids in by_reason.items()
    )


def _add(push: Push, group: _Group, count: int) -> None:
    if not count:
        return
    is_sent = group.state == PushTarget.State.SENT
    if is_sent:
        push.sent += count
    else:
        push.failed += count
    prefix = "sent" if is_sent else "failed"
    totals.add_type(push.totals, prefix, group.device_type, count)
    if group.utc_offset is not None:
        totals.add_offset(push.totals, prefix, local_times.hours(group.utc_offset), count)


def _report(push_id: str, targets: Sequence[PushTarget], outcomes: Sequence[Outcome]) -> None:
    by_result: dict[str, int] = defaultdict(int)
    for outcome in outcomes:
        by_result[outcome.result.name.lower()] += 1
    log.info("push chunk sent", push=push_id, **by_result)
    problems = {outcome.reason for outcome in outcomes if outcome.result is not Result.SENT}
    for reason in sorted(problems)[:5]:
        log.warning("notifications not sent", push=push_id, reason=reason)


def finish(push_id: str) -> bool:
    """End a push whose targets are all read and done; return whether it has ended now."""
    with orm_queries(), transaction.atomic():
        sending = Push.objects.select_for_update(no_key=True)
        push = sending.filter(pk=push_id, state=Push.State.SENDING).first()
        if push is None or push.targets.filter(state=PushTarget.State.PENDING).exists():
            return False
        Push.objects.filter(pk=push_id).update(
            state=Push.State.ENDED, ended_at=Now(), is_published=False
        )
    statuses.publish(push_id)
    seconds = (datetime.now(UTC) - push.created_at).total_seconds()
    log.info("push ended", push=push_id, sent=push.sent, failed=push.failed, seconds=round(seconds))
    return True


# -- What is due ----------------------------------------------------------------------------------


def start_due(
    queue_expansion: Callable[[str], None],
    queue_sending: Callable[[str], None],
    *,
    limit: int = _MAX_PUSHES_PER_SWEEP,
) -> None:
    """Continue at most ``limit`` pushes in each of these cases, the oldest first:

    - Pages of targets are to be read: ``queue_expansion`` is called.
    - Targets are due: ``queue_sending`` is called.
    - All targets are read and done: the push is ended.
    - The status isn't up to date: it is published.
    """

    def oldest(pushes: QuerySet[Push]) -> list[str]:
        return [*pushes.order_by("due_at").values_list("pk", flat=True)[:limit]]

    pending = PushTarget.objects.filter(push=OuterRef("pk"), state=PushTarget.State.PENDING)
    due = Exists(pending.filter(due_at__lte=Now()))
    with orm_queries():
        to_expand = oldest(Push.objects.filter(state=Push.State.WAITING, due_at__lte=Now()))
        to_send = oldest(Push.objects.exclude(state=Push.State.ENDED).filter(due))
        to_finish = oldest(Push.objects.filter(~Exists(pending), state=Push.State.SENDING))
        # Those that fail go last, so that they can't keep the others from it.
        behind = statuses.behind().order_by("publish_failures", "due_at")
        to_publish = [*behind.values_list("pk", flat=True)[:limit]]
    for push_id in to_expand:
        queue_expansion(push_id)
    for push_id in to_send:
        queue_sending(push_id)
    for push_id in to_finish:
        finish(push_id)
    for push_id in to_publish:
        statuses.publish(push_id)
