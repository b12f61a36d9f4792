"""Background work of functions: triggers that needn't hold anybody up."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from celery import shared_task

from backend.kernel.principal import Authority, Principal
from backend.kernel.request_context import current
from backend.logs.setup import get_logger
from backend.tasks import broker
from functions.runtime.registry import Trigger, registry
from functions.triggers.calls import fire
from objects.core.names import Subject
from objects.triggers import Event, Occasion

log = get_logger("functions")


def start_trigger(one: Trigger, occasion: Occasion) -> None:
    """Run a trigger in a worker."""
    said = asdict(occasion.principal)
    # Tokens never pass the broker.
    said.pop("session_token")
    said["authority"] = occasion.principal.authority.value
    said["roles"] = sorted(occasion.principal.roles)
    broker.send_surely(
        run_trigger,
        one.event,
        one.class_name,
        occasion.class_name,
        said,
        occasion.object,
        occasion.original,
        current().context,
    )


@shared_task(name="functions.run_trigger", ignore_result=True)
def run_trigger(
    event: Event,
    registered_for: str,
    class_name: str,
    principal: dict[str, Any],
    obj: dict[str, Any] | None,
    original: dict[str, Any] | None,
    context: dict[str, Any],
) -> None:
    """Run a background trigger. May run twice, if a worker dies in the middle."""
    caller = Principal(
        Authority(principal.pop("authority")),
        roles=frozenset(principal.pop("roles")),
        **principal,
    )
    current().context = context
    one = registry.triggers.get((event, registered_for))
    if one is None:
        log.warning("trigger not there any more", trigger=event, class_name=registered_for)
        return
    fire(one, Occasion(event, Subject(class_name), caller, object=obj, original=original))
