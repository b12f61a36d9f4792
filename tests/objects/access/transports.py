"""The ways on which one request can come: as it is, as a POST that says its method, in a batch,
through a server function that does it for its caller."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlencode

from tests.rest import Api, Reply

Send = Callable[[Api, str, str, Any], Reply]


def directly(api: Api, method: str, path: str, body: Any) -> Reply:
    if method == "GET" and body:
        encoded = {k: v if isinstance(v, str) else json.dumps(v) for k, v in body.items()}
        return api.call("GET", f"{path}?{urlencode(encoded)}")
    return api.call(method, path, body)


def overridden(api: Api, method: str, path: str, body: Any) -> Reply:
    return api.post(path, {**(body or {}), "_method": method})


def batched(api: Api, method: str, path: str, body: Any) -> Reply:
    request = {"method": method, "path": f"/api{path}", "body": body or {}}
    return _unpacked(api.post("/batch", {"requests": [request]}))


def batched_together(api: Api, method: str, path: str, body: Any) -> Reply:
    request = {"method": method, "path": f"/api{path}", "body": body or {}}
    return _unpacked(api.post("/batch", {"requests": [request], "transaction": True}))


def by_function(api: Api, method: str, path: str, body: Any) -> Reply:
    if not path.startswith("/classes/"):
        return directly(api, method, path, body)
    # Registered when Django is set up, which it isn't where this module is imported.
    import_module("tests.objects.access.service_function")
    params = {"method": method, "path": unquote(path), "body": body or {}}
    reply = api.post("/functions/testDoor", params)
    if reply.status != 200:
        return reply
    return Reply(200, reply.json["result"], reply.headers)


TRANSPORTS: tuple[Send, ...] = (directly, overridden, batched, batched_together, by_function)


def _unpacked(reply: Reply) -> Reply:
    if reply.status != 200:
        return reply
    (item,) = reply.json
    if "success" in item:
        return Reply(200, item["success"], reply.headers)
    return Reply(400, item["error"], reply.headers)
