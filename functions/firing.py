"""Running one trigger at one occasion."""

from __future__ import annotations

from functions.registry import Trigger
from functions.request import FindRequest, TriggerRequest
from functions.runner import run, time_limit_of
from objects.triggers import Occasion


def fire(one: Trigger, occasion: Occasion) -> None:
    """Run a trigger here and now; what it changed is in the occasion. Raises ``ServiceError``."""
    is_find = one.event in ("before_find", "after_find") and occasion.object is None
    request: TriggerRequest | FindRequest
    request = FindRequest(occasion) if is_find else TriggerRequest(occasion)

    def body() -> None:
        one.requirements.check(occasion.principal, lambda: request.user or {})
        answer = one.body(request)
        if isinstance(request, FindRequest):
            request.write_back(answer)
        elif one.event == "before_save":
            request.write_back()

    run(f"trigger {one.event} of {one.class_name}", body, time_limit_of(one.time_limit))
