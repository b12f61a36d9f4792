"""``POST /functions/NAME`` (docs/functions.md)."""

from __future__ import annotations

from typing import Any

from backend.http.call import Call
from backend.http.idempotency import Keeping
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.openapi import Source, answer, describes, optional
from functions.runtime import runner
from functions.runtime.registry import find_function
from functions.runtime.values import NO_RESULT
from functions.views.openapi import described_functions, result_of


class FunctionView(ServiceView):
    """Call a server function. The application id is enough: functions decide who may call them."""

    tag = "Functions"
    requires = Requires.APPLICATION
    source = Source(described_functions)

    def keeping_of(self, call: Call, **kwargs: str) -> Keeping:
        function = find_function(kwargs["name"])
        if function is not None and function.in_transaction:
            return Keeping.IN_TRANSACTION
        # What it does outside of a transaction can't be undone.
        return Keeping.AFTERWARDS

    @describes(
        "callFunction",
        "Call a function",
        request=optional(dict[str, Any]),
        response=answer("What it returned.", result_of({})),
    )
    def post(self, call: Call, name: str) -> Answer:
        result = runner.call(name, call.body, call.principal, call.key, call.params)
        return Answer({} if result is NO_RESULT else {"result": result})
