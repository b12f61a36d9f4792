"""``/events``: what apps report of themselves, and how often."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.openapi import answer, describes, optional, query, ref
from objects.analytics import service
from objects.views.bodies import EmptyAnswer


class EventForm(TypedDict, total=False):
    at: Annotated[Any, Meta(extra_json_schema={"anyOf": [ref("DateValue"), {"type": "null"}]})]
    dimensions: (
        Annotated[dict[str, Annotated[str, Meta(max_length=256)]], Meta(max_length=8)] | None
    )


class _EventCount(TypedDict):
    day: Annotated[str, Meta(extra_json_schema={"format": "date"})]
    name: str
    count: int
    value: NotRequired[str | None]


class EventCounts(TypedDict):
    results: list[_EventCount]


_TIME = {"type": "string", "format": "date-time"}
_SPAN = (
    query("since", _TIME, "Start of the period; by default 30 days before `until`."),
    query("until", _TIME, "End of the period; by default now."),
    query("dimension", {"type": "string"}, "Count by the values of this dimension, too."),
)
_COUNTS = answer("Counts by day.", EventCounts)


class EventView(ServiceView):
    """The events of one name: report one; count them, for the master key."""

    tag = "Events"

    @describes(
        "countEvents",
        "The number of events of a name",
        parameters=_SPAN,
        response=_COUNTS,
        requires=Requires.MASTER_KEY,
    )
    def get(self, call: Call, name: str) -> Answer:
        return Answer({"results": service.counts(call.principal, name, call.params)})

    @describes(
        "reportEvent",
        "Report an event",
        request=optional(EventForm),
        response=answer("The event was accepted.", EmptyAnswer),
    )
    def post(self, call: Call, name: str) -> Answer:
        service.record(call.principal, name, call.body)
        return Answer({})


class EventsView(ServiceView):
    """The events of all names: count them, for the master key."""

    tag = "Events"
    requires = Requires.MASTER_KEY

    @describes("countAllEvents", "The number of events", parameters=_SPAN, response=_COUNTS)
    def get(self, call: Call) -> Answer:
        return Answer({"results": service.counts(call.principal, None, call.params)})
