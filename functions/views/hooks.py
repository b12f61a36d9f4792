"""``/hooks``: functions and triggers that are webhooks, for the master key."""

from __future__ import annotations

from collections.abc import Mapping

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from functions.webhooks import service
from functions.webhooks.names import checked_subject
from objects.core.names import Subject


class FunctionHooksView(ServiceView):
    """Functions: list them, declare one."""

    requires = Requires.MASTER_KEY

    def get(self, call: Call) -> Answer:
        return Answer(service.functions(call.principal))

    def post(self, call: Call) -> Answer:
        return Answer(service.create(call.principal, call.body))


class FunctionHookView(ServiceView):
    """One function: show, change, remove it."""

    requires = Requires.MASTER_KEY

    def get(self, call: Call, name: str) -> Answer:
        return Answer(service.function(call.principal, name))

    def put(self, call: Call, name: str) -> Answer:
        if call.body.get("__op") == "Delete":
            return self.delete(call, name)
        return Answer(service.update_function(call.principal, name, call.body))

    def delete(self, call: Call, name: str) -> Answer:
        service.delete_function(call.principal, name)
        return Answer({})


class TriggerHooksView(ServiceView):
    """Triggers: list them, declare one."""

    requires = Requires.MASTER_KEY

    def get(self, call: Call) -> Answer:
        return Answer(service.triggers(call.principal))

    def post(self, call: Call) -> Answer:
        return Answer(service.create(call.principal, call.body))


class TriggerHookView(ServiceView):
    """One trigger: show, change, remove it."""

    requires = Requires.MASTER_KEY

    def parse_names(self, names: Mapping[str, str]) -> dict[str, str]:
        return {**names, "class_name": checked_subject(names["class_name"])}

    def get(self, call: Call, class_name: Subject, trigger_name: str) -> Answer:
        return Answer(service.trigger(call.principal, class_name, trigger_name))

    def put(self, call: Call, class_name: Subject, trigger_name: str) -> Answer:
        if call.body.get("__op") == "Delete":
            return self.delete(call, class_name, trigger_name)
        found = service.update_trigger(call.principal, class_name, trigger_name, call.body)
        return Answer(found)

    def delete(self, call: Call, class_name: Subject, trigger_name: str) -> Answer:
        service.delete_trigger(call.principal, class_name, trigger_name)
        return Answer({})
