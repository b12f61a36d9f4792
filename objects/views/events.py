"""``/events``: what apps report of themselves, and how often."""

from __future__ import annotations

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from objects.analytics import service


class EventView(ServiceView):
    """The events of one name: report one; count them, for the master key."""

    def get(self, call: Call, name: str) -> Answer:
        return Answer({"results": service.counts(call.principal, name, call.params)})

    def post(self, call: Call, name: str) -> Answer:
        service.record(call.principal, name, call.body)
        return Answer({})


class EventsView(ServiceView):
    """The events of all names: count them, for the master key."""

    requires = Requires.MASTER_KEY

    def get(self, call: Call) -> Answer:
        return Answer({"results": service.counts(call.principal, None, call.params)})
