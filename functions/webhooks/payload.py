"""Request bodies of webhooks: the JSON that Parse sends, with a few more fields.

Passwords, session tokens and proofs of other services are never included, nor are headers that
authenticate the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from backend.kernel.errors import ObjectNotFound
from backend.kernel.json_types import Wire
from backend.kernel.principal import MASTER, Principal
from backend.kernel.request_context import current
from backend.kernel.texts.encoding import encode_json
from functions.runtime.request import FunctionRequest
from functions.runtime.values import encode
from objects import service
from objects.core.names import USER, ObjectId
from objects.core.query.tree import FindOptions
from objects.core.values import pointer
from objects.storage.records import wire_object
from objects.triggers import CONFIG, FILE, Occasion

SECRET: Final = frozenset({"password", "sessionToken"})
_MAX_USER_BYTES: Final = 64 * 1024
_OF_PEOPLE: Final = frozenset({"_User", "_Session"})


def of_function(request: FunctionRequest) -> Wire:
    """Return the body for the call of a function."""
    return {
        "functionName": request.name,
        "params": encode(request.params),
        **_caller(request.principal),
    }


def of_trigger(trigger_name: str, occasion: Occasion) -> Wire:
    """Return the body for an event of a class."""
    about = occasion.class_name
    is_find = occasion.event in ("before_find", "after_find")
    # Reading the user would trigger the same event again.
    caller = _caller(occasion.principal, only_pointer=is_find and about == "_User")
    if occasion.event == "before_login":
        caller.pop("user", None)  # not logged in yet, as in Parse
    body: Wire = {"triggerName": trigger_name, **caller}
    if occasion.object is not None:
        body["object"] = shown(about, occasion.object)
        if about == FILE:
            body["fileSize"] = occasion.object.get("size")
    if occasion.original is not None:
        body["original"] = shown(about, occasion.original)
    if occasion.objects is not None:
        body["objects"] = [shown(about, wire) for wire in occasion.objects]
    if is_find and occasion.query is not None:
        body |= {"query": {"className": about, **_query(occasion.query)}, "isGet": occasion.is_get}
        if occasion.event == "before_find":
            body["count"] = occasion.query.count
    return body


def shown(class_name: str, wire: Mapping[str, Any]) -> Wire:
    """Return an object without secrets, with ``className`` among its fields as in Parse."""
    if class_name == CONFIG:
        return {"className": CONFIG, "params": dict(wire)}
    hidden = SECRET if class_name in _OF_PEOPLE else frozenset()
    fields = {name: value for name, value in wire.items() if name not in hidden}
    return {**fields, "className": class_name}


def _query(query: FindOptions) -> Wire:
    wire: Wire = {
        **query.advice,
        "where": query.raw_where or {},
        "limit": query.limit,
        "skip": query.skip,
    }
    if query.order:
        wire["order"] = ",".join(
            ("-" if order.descending else "") + ".".join(order.path) for order in query.order
        )
    if query.keys is not None:
        wire["keys"] = _paths(query.keys)
    if query.exclude_keys:
        wire["excludeKeys"] = _paths(query.exclude_keys)
    if query.include or query.include_all:
        wire["include"] = "*" if query.include_all else _paths(query.include)
    return wire


def of_notification(trigger_name: str, occasion: Occasion) -> bytes:
    """Return the encoded body for an event that is over, for storing it.

    A large user is only a pointer in it: otherwise each small save of a user with a large account
    would store the account again.
    """
    body = of_trigger(trigger_name, occasion)
    text = encode_json(body)
    if len(text) > _MAX_USER_BYTES and len(encode_json(body.get("user"))) > _MAX_USER_BYTES:
        body["user"] = pointer("_User", str(occasion.principal.user_id))
        text = encode_json(body)
    return text


class _OfRequest(msgspec.Struct):
    """What a stored body says of the request that caused it."""

    request_id: str = msgspec.field(name="requestId", default="")


_decoder: Final = msgspec.json.Decoder(_OfRequest)


def request_id_of(body: str) -> str:
    """Return the id of the request that a stored body is about, or an empty text."""
    try:
        return _decoder.decode(body).request_id
    except msgspec.DecodeError:
        return ""


def _paths(paths: Any) -> str:
    return ",".join(sorted(".".join(path) for path in paths))


def _caller(principal: Principal, *, only_pointer: bool = False) -> Wire:
    now = current()
    fields: Wire = {
        "master": principal.has_master_key and principal.may_write_as_master,
        "isReadOnly": principal.is_master and not principal.may_write_as_master,
        "ip": now.address,
        "headers": dict(now.headers),
        "context": now.context,
        "requestId": now.request_id,
    }
    if principal.installation_id is not None:
        fields["installationId"] = principal.installation_id
    if principal.user_id is not None:
        fields["user"] = pointer("_User", principal.user_id)
        if not only_pointer:
            with suppress(ObjectNotFound):
                user = wire_object(service.get(MASTER, USER, ObjectId(principal.user_id)))
                fields["user"] = shown("_User", user)
    return fields
