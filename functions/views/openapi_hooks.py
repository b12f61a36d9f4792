"""The part of webhooks in the API document."""

from __future__ import annotations

from typing import Any

from backend.http.permissions import Requires
from backend.kernel.principal import Principal
from backend.openapi import Names, Offer, Operation, Part, answer, body, contribute, ref

Json = dict[str, Any]

_TAG = "Webhooks"
_MASTER = Requires.MASTER_KEY
_TEXT: Json = {"type": "string"}
_URL: Json = {"type": "string", "description": "Where the service calls, by http or https."}
_CLASS_NAME: Json = {
    "name": "className",
    "in": "path",
    "required": True,
    "description": "The name of a class, or `@File` and the like.",
    "schema": {"type": "string", "minLength": 1},
}


def _object(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties, "required": [*required]}


_SCHEMAS: dict[str, Json] = {
    "FunctionHook": _object(
        {
            "functionName": _TEXT,
            "url": _URL,
            "shadowed": {"type": "boolean", "description": "A function in Python comes first."},
        },
        *("functionName", "url"),
    ),
    "TriggerHook": _object(
        {"className": _TEXT, "triggerName": _TEXT, "url": _URL},
        *("className", "triggerName", "url"),
    ),
    "HookAddress": _object({"url": _URL}, "url"),
    "HookRemoval": {
        **_object({"__op": {"const": "Delete", "default": "Delete"}}, "__op"),
        "description": "As old clients remove webhooks.",
    },
}


def contribute_hooks() -> None:
    """Describe the routes of ``functions.views.hooks``."""
    contribute(_hooks, schemas=_SCHEMAS)


def _hooks(principal: Principal) -> Offer:
    return Offer(None, _part)


def _part(names: Names) -> Part:
    return Part(
        {
            **_kind("/hooks/functions", "{name}", "Function", "functions"),
            **_kind("/hooks/triggers", "{className}/{triggerName}", "Trigger", "triggers"),
        }
    )


def _kind(path: str, names: str, kind: str, many: str) -> dict[str, dict[str, Operation]]:
    one = kind.lower()
    hook = ref(f"{kind}Hook")
    gone: Json = {"type": "object", "maxProperties": 0}

    # Also classes that are none: @File, @Config.
    parameters = (_CLASS_NAME,) if "{className}" in names else ()

    def operation(verb: str, summary: str, schema: Json, sent: Json | None = None) -> Operation:
        return Operation(
            verb,
            _TAG,
            summary,
            {"200": answer("As it is now.", schema)},
            requires=_MASTER,
            parameters=parameters if verb.startswith(("read", "change", "remove")) else (),
            body=None if sent is None else body(sent),
        )

    return {
        path: {
            "get": operation(
                f"list{kind}Hooks",
                f"The {many} that are webhooks",
                {"type": "array", "items": hook},
            ),
            "post": operation(f"add{kind}Hook", f"Declare a {one}", hook, hook),
        },
        f"{path}/{names}": {
            "get": operation(f"read{kind}Hook", f"A {one} that is a webhook", hook),
            "put": operation(
                f"change{kind}Hook",
                f"Give a {one} another address",
                {"anyOf": [hook, gone]},
                {"anyOf": [ref("HookAddress"), ref("HookRemoval")]},
            ),
            "delete": operation(f"remove{kind}Hook", f"Remove a {one}", gone),
        },
    }
