"""``/config``: the parameters of the app."""

from __future__ import annotations

from backend.http.call import Call
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from objects.app_config import service


class ConfigView(ServiceView):
    """Read the parameters; change some, for the master key."""

    def get(self, call: Call) -> Answer:
        return Answer(service.read(call.principal).wire())

    def put(self, call: Call) -> Answer:
        service.save(call.principal, call.body)
        return Answer({"result": True})
