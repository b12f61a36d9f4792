"""Events of classes with ``after_event`` triggers, which run before events are sent.

Events of one class are sent in the order of the changes; slow triggers of a class don't delay other
classes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Wire
from backend.kernel.texts.encoding import encode_json
from backend.logs.correlation import caused_by
from backend.logs.setup import get_logger
from objects.core.names import ClassName, ObjectId
from realtime.core import messages
from realtime.core.outcome import Op
from realtime.livequery import trigger_calls
from realtime.livequery.access import Access
from realtime.livequery.groups import Subscription, is_too_large
from realtime.livequery.trigger_calls import Counts
from realtime.sockets.connections import TRY_AGAIN

MOST_WAITING: Final = 10_000
"""Events of one class; subscribers of more are disconnected and have to reconnect."""
_AT_ONCE: Final = 50

log = get_logger("livequery")


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """One event for one subscriber. ``object`` is None where only ``object_id`` may be sent."""

    subscription: Subscription
    access: Access
    fields: frozenset[str] | None
    op: Op
    object_id: ObjectId
    object: Wire | None
    original: Wire | None


# The body to send, the error to send, or None for no event.
_Outcome = bytes | ServiceError | None


class EventTriggers:
    """The events that wait for triggers. Belongs to the event loop."""

    def __init__(
        self,
        in_thread: Callable[[Callable[[], list[_Outcome]]], Awaitable[list[_Outcome]]],
        counts: Callable[[], Counts],
    ) -> None:
        self._in_thread = in_thread
        self._counts = counts
        self._waiting: dict[str, deque[PendingEvent]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def put(self, class_name: ClassName, event: PendingEvent) -> None:
        """Send an event after all earlier ones of its class."""
        waiting = self._waiting.setdefault(class_name, deque())
        if len(waiting) >= MOST_WAITING:
            event.subscription.socket.close_with(TRY_AGAIN, "triggers are too slow")
            return
        waiting.append(event)
        if class_name not in self._tasks:
            self._tasks[class_name] = asyncio.create_task(self._send_all(class_name, waiting))

    def stop(self) -> None:
        """Stop sending."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._waiting.clear()

    async def _send_all(self, class_name: ClassName, waiting: deque[PendingEvent]) -> None:
        try:
            while waiting:
                batch = [waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))]
                await self._send_batch(batch)
        except Exception as error:
            # It isn't known which subscribers received their events.
            log.error("events of live queries are lost", class_name=class_name, exc_info=error)
            for event in (*batch, *waiting):
                event.subscription.socket.close_with(TRY_AGAIN, "events are lost")
            waiting.clear()
        finally:
            # There is no await since the last check, so nothing was added in between.
            if self._tasks.get(class_name) is asyncio.current_task():
                del self._tasks[class_name]

    async def _send_batch(self, batch: list[PendingEvent]) -> None:
        active = [event for event in batch if event.subscription.cohort is not None]
        counts = self._counts()
        outcomes = await self._in_thread(lambda: [_run_triggers(event, counts) for event in active])
        for event, outcome in zip(active, outcomes, strict=True):
            if event.subscription.cohort is None or outcome is None:
                continue
            if isinstance(outcome, ServiceError):
                event.subscription.send_error(outcome.code, outcome.message)
            elif is_too_large(outcome):
                event.subscription.send_too_large(f"{event.op} of {event.object_id}")
            else:
                event.subscription.socket.enqueue(
                    messages.event(event.op, event.subscription.middle, outcome)
                )


def _run_triggers(event: PendingEvent, counts: Counts) -> _Outcome:
    """Run the triggers for an event."""
    if event.object is None:
        # The trigger isn't shown the object, so nothing is sent that it might have held back.
        only = messages.identity_only(event.access.class_name, event.object_id)
        return messages.event_body(only, None)
    principal = event.subscription.principal
    try:
        with caused_by(event.subscription.socket.request_id):
            result = trigger_calls.after_event(
                principal, event.access, event.op, event.object, event.original, counts
            )
        if result is None:
            return None
        obj, original = result
        return messages.event_body(
            _shown(event, obj), None if original is None else _shown(event, original)
        )
    except ServiceError as error:
        return error


def _shown(event: PendingEvent, obj: Wire) -> bytes:
    fields = event.fields
    visible = {name: value for name, value in obj.items() if fields is None or name in fields}
    return encode_json({"className": event.access.class_name, **visible})
