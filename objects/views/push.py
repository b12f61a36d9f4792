"""``/push`` and ``/push_audiences``: notifications and stored queries for their targets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from backend.http.call import Call
from backend.http.headers import status_id_headers
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.kernel.json_types import Wire
from backend.openapi import DateTime, answer, describes, optional
from objects import service
from objects.core.names import AUDIENCE, ObjectId
from objects.core.query.options import parse_find_options, parse_get_options
from objects.push.service import send
from objects.storage.records import wire_object
from objects.views.base import ClassView
from objects.views.bodies import CREATED, DONE, FIND_PARAMETERS, GET_PARAMETERS, UPDATED
from objects.views.classes import created_answer, find_limits

_SENT: Final = {
    "X-Svc-Push-Status-Id": {
        "description": "The id of the push's object of `_PushStatus`.",
        "schema": {"type": "string"},
    }
}


class PushForm(TypedDict, total=False):
    """Either `where` or `channels`."""

    where: Annotated[Any, Meta(description="A query for `_Installation`.")]
    channels: Annotated[Any, Meta(description="Names of channels, in an array.")]
    data: Annotated[
        dict[str, Any] | None,
        Meta(description="`alert`, `title`, `badge`, `sound`, … and fields of your own."),
    ]
    push_time: Annotated[
        str | float,
        Meta(description="When it is sent; without a zone, by the clocks of devices."),
    ]
    expiration_time: str | float
    expiration_interval: Annotated[float, Meta(gt=0)]
    audience_id: Annotated[Any, Meta(description="The id of the audience with the query.")]


class _PushAccepted(TypedDict):
    result: bool


class PushAudience(TypedDict):
    """A stored query for installations."""

    objectId: str
    createdAt: DateTime
    updatedAt: DateTime
    name: NotRequired[str | None]
    query: NotRequired[Annotated[Any, Meta(description="A query for `_Installation`.")]]
    lastUsed: NotRequired[dict[str, Any] | None]
    timesUsed: NotRequired[float | None]


class PushAudienceResults(TypedDict):
    results: list[PushAudience]
    count: NotRequired[int]


class PushAudienceForm(TypedDict, total=False):
    name: str | None
    query: Annotated[str | None, Meta(description="The query, as JSON text.")]


class PushView(ClassView):
    """Send a notification to installations."""

    tag = "Push"
    requires = Requires.MASTER_KEY

    @describes(
        "sendPush",
        "Send a push notification",
        request=PushForm,
        response=answer("It is stored, and will be sent.", _PushAccepted, headers=_SENT),
    )
    def post(self, call: Call) -> Answer:
        push_id = send(call.principal, call.body)
        return Answer({"result": True}, headers=status_id_headers("Push", push_id))


class PushAudiencesView(ClassView):
    """Stored queries for the targets of pushes."""

    tag = "Push"
    requires = Requires.MASTER_KEY

    @describes(
        "listPushAudiences",
        "Find audiences",
        parameters=FIND_PARAMETERS,
        response=answer("The audiences that match.", PushAudienceResults),
    )
    def get(self, call: Call) -> Answer:
        # Parse's SDK sends a query of a GET in its body.
        options = parse_find_options({**call.params, **call.body}, find_limits())
        audiences = service.find(call.principal, AUDIENCE, options)
        body: Wire = {"results": [_with_query(audience) for audience in audiences.objects()]}
        if audiences.count is not None:
            body["count"] = audiences.count
        return Answer(body)

    @describes(
        "addPushAudience",
        "Create an audience",
        request=optional(PushAudienceForm),
        response=CREATED,
    )
    def post(self, call: Call) -> Answer:
        created = service.create(call.principal, AUDIENCE, call.body)
        return created_answer(created, "/push_audiences")


class PushAudienceView(ClassView):
    """One audience."""

    tag = "Push"
    requires = Requires.MASTER_KEY

    @describes(
        "readPushAudience",
        "Get an audience",
        parameters=GET_PARAMETERS,
        response=answer("The audience.", PushAudience),
    )
    def get(self, call: Call, object_id: ObjectId) -> Answer:
        options = parse_get_options(call.params, find_limits())
        audience = service.get(call.principal, AUDIENCE, object_id, options)
        return Answer(_with_query(wire_object(audience)))

    @describes(
        "changePushAudience",
        "Change an audience",
        request=optional(PushAudienceForm),
        response=UPDATED,
    )
    def put(self, call: Call, object_id: ObjectId) -> Answer:
        updated = service.update(call.principal, AUDIENCE, object_id, call.body)
        return Answer({"updatedAt": updated.updated_at, **updated.fields})

    @describes("removePushAudience", "Delete an audience", response=DONE)
    def delete(self, call: Call, object_id: ObjectId) -> Answer:
        service.delete(call.principal, AUDIENCE, object_id)
        return Answer({})


def _with_query(audience: Mapping[str, Any]) -> Wire:
    """Return an audience with its query as JSON; text that is no JSON stays text."""
    shown = dict(audience)
    if isinstance(shown.get("query"), str):
        with suppress(msgspec.DecodeError, RecursionError):
            shown["query"] = msgspec.json.decode(shown["query"])
    return shown
