"""Celery tasks of triggers that run in the background."""

from __future__ import annotations

from dataclasses import asdict
from time import perf_counter
from typing import Any

from celery import Task, shared_task

from backend.kernel.principal import Authority, Principal
from backend.kernel.request_context import current
from backend.logs.setup import get_logger
from backend.tasks import broker, lanes
from functions.runtime.registry import Trigger, registry
from functions.triggers.calls import fire
from objects.core.names import Subject
from objects.triggers import Event, Occasion

log = get_logger("functions")


def start_trigger(trigger: Trigger, occasion: Occasion) -> None:
    """Run a trigger in a worker."""
    principal_fields = asdict(occasion.principal)
    # Tokens never pass the broker.
    principal_fields.pop("session_token")
    principal_fields["authority"] = occasion.principal.authority.value
    principal_fields["roles"] = sorted(occasion.principal.roles)
    broker.send_surely(
        run_trigger,
        trigger.event,
        trigger.class_name,
        occasion.class_name,
        principal_fields,
        occasion.object,
        occasion.original,
        current().context,
    )


@shared_task(name="functions.run_trigger", bind=True, ignore_result=True)
def run_trigger(
    self: Task[Any, Any],
    event: Event,
    registered_for: str,
    class_name: str,
    principal: dict[str, Any],
    obj: dict[str, Any] | None,
    original: dict[str, Any] | None,
    context: dict[str, Any],
) -> None:
    """Run a background trigger. May run twice, if a worker dies in the middle."""
    with lanes.task_place(self, lanes.TRIGGERS, f"{event} of {registered_for}"):
        caller = Principal(
            Authority(principal.pop("authority")),
            roles=frozenset(principal.pop("roles")),
            **principal,
        )
        current().context = context
        trigger = registry.triggers.get((event, registered_for))
        if trigger is None:
            log.warning("trigger not there any more", trigger=event, class_name=registered_for)
            return
        begin = perf_counter()
        fire(trigger, Occasion(event, Subject(class_name), caller, object=obj, original=original))
        log.info(
            "background trigger ended",
            trigger=event,
            class_name=class_name,
            object_id=(obj or {}).get("objectId"),
            ms=round((perf_counter() - begin) * 1000, 2),
        )
