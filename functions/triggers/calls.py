"""Execution of a trigger for an event."""

from __future__ import annotations

from functions.runtime.registry import Trigger
from functions.runtime.request import FindRequest, TriggerRequest
from functions.runtime.runner import run, time_limit_of
from functions.triggers.live_requests import ConnectRequest, LiveEventRequest, SubscribeRequest
from objects.triggers import Occasion

_Request = TriggerRequest | FindRequest | ConnectRequest | SubscribeRequest | LiveEventRequest


def fire(trigger: Trigger, occasion: Occasion) -> None:
    """Run a trigger and apply its changes to the occasion. Raises ``ServiceError``."""
    request = _request(trigger, occasion)

    def body() -> None:
        trigger.requirements.check(occasion.principal, lambda: request.user or {})
        answer = trigger.body(request)
        if isinstance(request, FindRequest):
            request.write_back(answer)
        elif isinstance(request, SubscribeRequest | LiveEventRequest) or (
            isinstance(request, TriggerRequest) and trigger.event == "before_save"
        ):
            request.write_back()

    run(f"trigger {trigger.event} of {trigger.class_name}", body, time_limit_of(trigger.time_limit))


def _request(trigger: Trigger, occasion: Occasion) -> _Request:
    if trigger.event == "before_connect":
        return ConnectRequest(occasion)
    if trigger.event == "before_subscribe":
        return SubscribeRequest(occasion)
    if trigger.event == "after_event":
        return LiveEventRequest(occasion)
    is_find = trigger.event in ("before_find", "after_find") and occasion.object is None
    return FindRequest(occasion) if is_find else TriggerRequest(occasion)
