"""``POST /functions/NAME`` (endpoint 1 of the specification)."""

from __future__ import annotations

from backend.http.call import Call
from backend.http.idempotency import Keeping
from backend.http.parsers import decoded_parameters
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from functions.runtime import runner
from functions.runtime.registry import find_function


class FunctionView(ServiceView):
    """Call a server function. The application id is enough: functions decide who may call them."""

    requires = Requires.APPLICATION

    def keeping_of(self, call: Call, **kwargs: str) -> Keeping:
        function = find_function(kwargs["name"])
        if function is not None and function.in_transaction:
            return Keeping.IN_TRANSACTION
        # What it does outside of a transaction can't be undone.
        return Keeping.AFTERWARDS

    def post(self, call: Call, name: str) -> Answer:
        params = {**decoded_parameters(call.params), **call.body}
        return Answer({"result": runner.call(name, params, call.principal, call.key)})
