"""``POST /functions/NAME`` (endpoint 1 of the specification)."""

from __future__ import annotations

from backend.api.idempotency import Keeping
from backend.api.parsers import decoded_parameters
from backend.api.permissions import Requires
from backend.api.renderers import Answer
from backend.api.views import Call, ServiceView
from functions import runner


class FunctionView(ServiceView):
    """Call a server function. The application id is enough: functions decide who may call them."""

    requires = Requires.APPLICATION
    # What a function does outside of the database can't be undone.
    keeping = Keeping.AFTERWARDS

    def post(self, call: Call, name: str) -> Answer:
        params = {**decoded_parameters(call.params), **call.body}
        return Answer({"result": runner.call(name, params, call.principal, call.key)})
