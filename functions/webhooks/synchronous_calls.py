"""Synchronous webhook calls: functions, and triggers that may change or reject an operation.

An invalid response (``responses``) or a timeout raises ``ScriptFailed`` (141), which names the
function or trigger and never the URL. The URL is read for each call, so changes and removals of a
webhook take effect immediately.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

from backend.kernel.errors import ScriptFailed
from backend.kernel.json_types import Json, Wire
from backend.kernel.outgoing import Unreachable
from backend.kernel.texts.encoding import encode_json
from backend.logs.setup import get_logger
from functions.runtime.parameters import Parameters
from functions.runtime.registry import Function
from functions.runtime.request import FindRequest, FunctionRequest
from functions.runtime.requirements import requirements
from functions.runtime.runner import run
from functions.runtime.values import NO_RESULT, NoResult, decode
from functions.webhooks import client, payload, request_time, signatures
from functions.webhooks.models import Hook
from functions.webhooks.names import is_hook_name
from functions.webhooks.responses import BadResponse, Refusal, success_of
from objects.database import hold
from objects.triggers import CONFIG, Occasion

log = get_logger("webhooks")

# What a response to beforeFind may replace of the query, as parameters of a search.
_OPTIONS: Final = ("limit", "skip", "order", "keys", "excludeKeys", "include")
# What a whole object needn't name: an access list is never lost by accident, and the others aren't
# among the fields that the webhook gets, or are the service's.
_STAYING: Final = payload.SECRET | {"authData", "ACL", "objectId", "createdAt", "updatedAt"}
_NO_REQUIREMENTS: Final = requirements()


def function(name: str) -> Function | None:
    """Return the function that a webhook implements, or None."""
    url = _url(function_name=name) if is_hook_name(name) else None
    if url is None:
        return None

    def body(request: FunctionRequest) -> Any:
        result = _call(f"function {name}", url, payload.of_function(request))
        return result if result is NO_RESULT else decode(result)

    return Function(name, body, Parameters({}), _NO_REQUIREMENTS, "", False, 0, is_webhook=True)


def trigger(hook_id: int, trigger_name: str, occasion: Occasion) -> None:
    """Call the webhook of a trigger and apply its response to ``occasion``."""
    url = _url(id=hook_id)
    if url is None:
        return
    what = f"trigger {trigger_name} of {occasion.class_name}"

    def body() -> Any:
        return _call(what, url, payload.of_trigger(trigger_name, occasion))

    _apply(run(f"webhook of {what}", body, 0), occasion)


def _url(**which: object) -> str | None:
    return Hook.objects.filter(**which).order_by().values_list("url", flat=True).first()


def _call(what: str, url: str, message: Wire) -> Json | NoResult:
    hold.check("webhooks")
    try:
        key, body = signatures.new_key(), encode_json(message)
        with request_time.counted() as seconds:
            return success_of(client.post(url, body, signatures.headers(key, body), seconds))
    except Refusal as refusal:
        raise refusal.error() from None
    except (Unreachable, BadResponse) as error:
        log.warning("webhook failed", what=what, reason=str(error))
        raise ScriptFailed(f"The webhook for the {what} failed: {error}.") from None


# -- Answers to triggers --------------------------------------------------------------------------


def _apply(answer: Json | NoResult, occasion: Occasion) -> None:
    """Apply the response to the occasion, as far as its event allows."""
    if occasion.event == "before_save":
        if isinstance(answer, dict):
            _change(answer, occasion)
    elif occasion.event in ("before_find", "after_find") and occasion.object is None:
        if isinstance(answer, list):
            occasion.objects = [_object(item) for item in answer]
        elif isinstance(answer, dict) and occasion.event == "before_find":
            _narrow(answer, occasion)


def _change(answer: dict[str, Json], occasion: Occasion) -> None:
    """Set the fields that the response names and leave the remaining ones.

    A response with ``className`` is the whole object: of what it doesn't name, nothing is saved.
    """
    is_whole = "className" in answer and occasion.class_name != CONFIG
    if occasion.class_name == CONFIG:
        params = answer.get("params")
        answer = params if isinstance(params, dict) else {}
    changed = dict(occasion.object or {})
    if is_whole:
        _take_back(changed.keys() - answer.keys() - _STAYING, changed, occasion)
    for name, value in answer.items():
        if name == "className":
            continue
        if isinstance(value, dict) and value.get("__op") == "Delete":
            changed.pop(name, None)
        else:
            changed[name] = value
    occasion.object = changed


def _take_back(names: Set[str], changed: dict[str, Json], occasion: Occasion) -> None:
    """Undo what the write does to fields that a whole object doesn't name, as in Parse."""
    before = occasion.original or {}
    for name in names:
        if name in before:
            changed[name] = before[name]
        else:
            del changed[name]


def _object(item: Json) -> dict[str, Json]:
    if not isinstance(item, dict):
        raise ScriptFailed("The webhook's answer objects must contain only objects.")
    return {name: value for name, value in item.items() if name not in ("__type", "className")}


def _narrow(answer: dict[str, Json], occasion: Occasion) -> None:
    """Join the conditions of a response to the query, and replace its other options."""
    request = FindRequest(occasion)
    where = answer.get("where")
    if isinstance(where, dict) and where:
        request.query.where(where)
    for name in _OPTIONS:
        if answer.get(name) is not None:
            request.query.set_option(name, answer[name])
    request.write_back()
