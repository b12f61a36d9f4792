"""``/hooks``: functions and triggers that are webhooks, for the master key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, TypedDict

from msgspec import Meta

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel.errors import InvalidClassName, InvalidHook
from backend.kernel.texts.shown import shown
from backend.openapi import AnyOf, EmptyObject, answer, describes
from functions.webhooks import service
from functions.webhooks.names import checked_subject
from objects.core.names import Subject

_Url: TypeAlias = Annotated[
    str, Meta(description="The address that the service calls, by http or https.")
]


_Background: TypeAlias = Annotated[
    bool, Meta(description="Only a worker delivers it; for `after…` triggers that change nothing.")
]


class FunctionHook(TypedDict):
    functionName: str
    url: _Url
    shadowed: NotRequired[
        Annotated[bool, Meta(description="A function in Python takes precedence.")]
    ]


class TriggerHook(TypedDict):
    className: str
    triggerName: str
    url: _Url
    background: NotRequired[_Background]


class HookAddress(TypedDict):
    url: _Url


class TriggerHookChange(TypedDict):
    url: NotRequired[_Url]
    background: NotRequired[_Background]


HookRemoval = TypedDict(
    "HookRemoval",
    {"__op": Annotated[Literal["Delete"], Meta(extra_json_schema={"default": "Delete"})]},
)
HookRemoval.__doc__ = "How old clients remove webhooks."

# The classes include those that are none: @File, @Config.
_CLASS_NAME: Final[dict[str, Any]] = {
    "name": "className",
    "in": "path",
    "required": True,
    "description": "The name of a class, or `@File` and the like.",
    "schema": {"type": "string", "minLength": 1},
}
_CHANGE: Final = AnyOf(HookAddress, HookRemoval)


class FunctionHooksView(ServiceView):
    """Functions: list them, declare one."""

    tag = "Webhooks"
    requires = Requires.MASTER_KEY

    @describes(
        "listFunctionHooks",
        "The functions that are webhooks",
        response=answer("The functions that are webhooks.", list[FunctionHook]),
    )
    def get(self, call: Call) -> Answer:
        return Answer(service.functions(call.principal))

    @describes(
        "addFunctionHook",
        "Declare a function",
        request=FunctionHook,
        response=answer("The new webhook.", FunctionHook),
    )
    def post(self, call: Call) -> Answer:
        return Answer(service.create(call.principal, call.body))


class FunctionHookView(ServiceView):
    """One function: show, change, remove it."""

    tag = "Webhooks"
    requires = Requires.MASTER_KEY

    @describes(
        "readFunctionHook",
        "A function that is a webhook",
        response=answer("The webhook.", FunctionHook),
    )
    def get(self, call: Call, name: str) -> Answer:
        return Answer(service.function(call.principal, name))

    @describes(
        "changeFunctionHook",
        "Give a function another address",
        request=_CHANGE,
        response=answer(
            "The webhook after the change, or an empty object if it was removed.",
            AnyOf(FunctionHook, EmptyObject),
        ),
    )
    def put(self, call: Call, name: str) -> Answer:
        if call.body.get("__op") == "Delete":
            return self.delete(call, name)
        return Answer(service.update_function(call.principal, name, call.body))

    @describes(
        "removeFunctionHook",
        "Remove a function",
        response=answer("The webhook was removed.", EmptyObject),
    )
    def delete(self, call: Call, name: str) -> Answer:
        service.delete_function(call.principal, name)
        return Answer({})


class TriggerHooksView(ServiceView):
    """Triggers: list them, declare one."""

    tag = "Webhooks"
    requires = Requires.MASTER_KEY

    @describes(
        "listTriggerHooks",
        "The triggers that are webhooks",
        response=answer("The triggers that are webhooks.", list[TriggerHook]),
    )
    def get(self, call: Call) -> Answer:
        return Answer(service.triggers(call.principal))

    @describes(
        "addTriggerHook",
        "Declare a trigger",
        request=TriggerHook,
        response=answer("The new webhook.", TriggerHook),
    )
    def post(self, call: Call) -> Answer:
        return Answer(service.create(call.principal, call.body))


class TriggerHookView(ServiceView):
    """One trigger: show, change, remove it."""

    tag = "Webhooks"
    requires = Requires.MASTER_KEY
    parameters = (_CLASS_NAME,)

    def parse_names(self, names: Mapping[str, str]) -> dict[str, str]:
        try:
            return {**names, "class_name": checked_subject(names["class_name"])}
        except InvalidClassName:
            raise InvalidHook(f"class {shown(names['class_name'])} does not exist") from None

    @describes(
        "readTriggerHook",
        "A trigger that is a webhook",
        response=answer("The webhook.", TriggerHook),
    )
    def get(self, call: Call, class_name: Subject, trigger_name: str) -> Answer:
        return Answer(service.trigger(call.principal, class_name, trigger_name))

    @describes(
        "changeTriggerHook",
        "Give a trigger another address, or another way of delivery",
        request=AnyOf(TriggerHookChange, HookRemoval),
        response=answer(
            "The webhook after the change, or an empty object if it was removed.",
            AnyOf(TriggerHook, EmptyObject),
        ),
    )
    def put(self, call: Call, class_name: Subject, trigger_name: str) -> Answer:
        if call.body.get("__op") == "Delete":
            return self.delete(call, class_name, trigger_name)
        hook = service.update_trigger(call.principal, class_name, trigger_name, call.body)
        return Answer(hook)

    @describes(
        "removeTriggerHook",
        "Remove a trigger",
        response=answer("The webhook was removed.", EmptyObject),
    )
    def delete(self, call: Call, class_name: Subject, trigger_name: str) -> Answer:
        service.delete_trigger(call.principal, class_name, trigger_name)
        return Answer({})
