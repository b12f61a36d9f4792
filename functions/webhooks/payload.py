"""What a webhook is told: the JSON that Parse sends, and a little more.

Passwords, session tokens and proofs of other services are never in it, nor is anything in
``headers`` that proves who somebody is.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from backend.kernel.errors import ObjectNotFound
from backend.kernel.json_types import Wire
from backend.kernel.principal import MASTER, Principal
from backend.kernel.request_context import current
from functions.runtime.request import FunctionRequest
from functions.runtime.values import encode
from objects import service
from objects.core.names import USER, ObjectId
from objects.core.values import pointer
from objects.storage.records import wire_object
from objects.triggers import CONFIG, FILE, Occasion

_SECRET: Final = frozenset({"password", "authData", "sessionToken"})
_OF_PEOPLE: Final = frozenset({"_User", "_Session"})


def of_function(request: FunctionRequest) -> Wire:
    """The call of a function."""
    return {
        "functionName": request.name,
        "params": encode(request.params),
        **_caller(request.principal),
    }


def of_trigger(trigger_name: str, occasion: Occasion) -> Wire:
    """An event of a class."""
    about = occasion.class_name
    is_find = occasion.event in ("before_find", "after_find")
    # Reading the user would be such an event itself.
    caller = _caller(occasion.principal, only_pointer=is_find and about == "_User")
    told: Wire = {"triggerName": trigger_name, **caller}
    if occasion.object is not None:
        told["object"] = shown(about, occasion.object)
        if about == FILE:
            told["fileSize"] = occasion.object.get("size")
    if occasion.original is not None:
        told["original"] = shown(about, occasion.original)
    if occasion.objects is not None:
        told["objects"] = [shown(about, one) for one in occasion.objects]
    if occasion.event == "before_find" and occasion.query is not None:
        told |= {
            "query": {"className": about, **_query(occasion)},
            "isGet": occasion.is_get,
            "count": occasion.query.count,
        }
    return told


def shown(class_name: str, wire: Mapping[str, Any]) -> Wire:
    """An object, with its class among its fields as Parse has it."""
    if class_name == CONFIG:
        return {"className": CONFIG, "params": dict(wire)}
    hidden = _SECRET if class_name in _OF_PEOPLE else frozenset()
    fields = {name: value for name, value in wire.items() if name not in hidden}
    return {**fields, "className": class_name}


def _query(occasion: Occasion) -> Wire:
    asked = occasion.query
    assert asked is not None
    said: Wire = {"where": asked.asked or {}, "limit": asked.limit, "skip": asked.skip}
    if asked.order:
        said["order"] = ",".join(
            ("-" if one.descending else "") + ".".join(one.path) for one in asked.order
        )
    if asked.keys is not None:
        said["keys"] = _paths(asked.keys)
    if asked.exclude_keys:
        said["excludeKeys"] = _paths(asked.exclude_keys)
    if asked.include:
        said["include"] = _paths(asked.include)
    return said


def _paths(paths: Any) -> str:
    return ",".join(sorted(".".join(path) for path in paths))


def _caller(principal: Principal, *, only_pointer: bool = False) -> Wire:
    now = current()
    told: Wire = {
        "master": principal.may_write_as_master,
        "isReadOnly": principal.is_master and not principal.may_write_as_master,
        "ip": now.address,
        "headers": dict(now.headers),
        "context": now.context,
        "requestId": now.request_id,
    }
    if principal.installation_id is not None:
        told["installationId"] = principal.installation_id
    if principal.user_id is not None:
        told["user"] = pointer("_User", principal.user_id)
        if not only_pointer:
            with suppress(ObjectNotFound):
                user = wire_object(service.get(MASTER, USER, ObjectId(principal.user_id)))
                told["user"] = shown("_User", user)
    return told
