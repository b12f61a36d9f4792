"""``/classes``: objects over REST (docs/rest.md)."""

from __future__ import annotations

import msgspec

from backend.http.call import Call
from backend.http.renderers import Answer
from backend.kernel.json_types import Wire
from backend.kernel.texts.encoding import encode_json
from backend.openapi import Source, answer, describes
from backend.settings.conf import service_settings
from objects import service
from objects.core.names import ClassName, ObjectId
from objects.core.query.options import FindLimits, parse_find_options, parse_get_options
from objects.service import Created, Found
from objects.storage.records import Record, wire_object
from objects.views.base import ClassView
from objects.views.bodies import (
    CREATED,
    DONE,
    FIELDS,
    FIND_PARAMETERS,
    GET_PARAMETERS,
    UPDATED,
    AnyObject,
    AnyResults,
    CreatedAnswer,
)
from objects.views.openapi import SCHEMAS, class_routes

_CLASS_ROUTES = Source(class_routes, SCHEMAS)


class ObjectsView(ClassView):
    """The objects of a class: find some, create one."""

    tag = "Objects"
    source = _CLASS_ROUTES

    @describes(
        "listObjects",
        "Find objects",
        parameters=FIND_PARAMETERS,
        response=answer("The objects that match and that the caller may read.", AnyResults),
    )
    def get(self, call: Call, class_name: ClassName) -> Answer:
        options = parse_find_options(call.params, find_limits(), is_master=call.principal.is_master)
        return Answer(found_body(service.find(call.principal, class_name, options)))

    @describes("addObject", "Create an object", request=FIELDS, response=CREATED)
    def post(self, call: Call, class_name: ClassName) -> Answer:
        created = service.create(call.principal, class_name, call.body)
        return created_answer(created, f"/classes/{class_name}")


class ObjectView(ClassView):
    """One object: read, change, remove it."""

    tag = "Objects"
    source = _CLASS_ROUTES

    @describes(
        "readObject",
        "Get an object",
        parameters=GET_PARAMETERS,
        response=answer("The object with the fields that the caller may read.", AnyObject),
    )
    def get(self, call: Call, class_name: ClassName, object_id: ObjectId) -> Answer:
        options = parse_get_options(call.params, find_limits())
        return Answer(object_body(service.get(call.principal, class_name, object_id, options)))

    @describes("changeObject", "Change an object", request=FIELDS, response=UPDATED)
    def put(self, call: Call, class_name: ClassName, object_id: ObjectId) -> Answer:
        updated = service.update(call.principal, class_name, object_id, call.body)
        return Answer({"updatedAt": updated.updated_at, **updated.fields})

    @describes("removeObject", "Delete an object", response=DONE)
    def delete(self, call: Call, class_name: ClassName, object_id: ObjectId) -> Answer:
        service.delete(call.principal, class_name, object_id)
        return Answer({})


class InstallationsView(ObjectsView):
    """Apps on devices: find some, register one."""

    @describes(
        "addInstallation",
        "Register an app on a device",
        request=FIELDS,
        response=(CREATED, answer("It was registered before.", CreatedAnswer)),
        description="`deviceType`, and `installationId` or `deviceToken`.",
    )
    def post(self, call: Call, class_name: ClassName) -> Answer:
        return super().post(call, class_name)


def found_body(results: Found) -> msgspec.Raw:
    """``{"results": […]}`` as JSON; whole records go in as the text they are."""
    # Joined as bytes: of large results there are fewer copies at a time.
    items = b",".join(
        [
            item.json().encode() if isinstance(item, Record) else encode_json(item)
            for item in results.results
        ]
        if results.class_name is None
        else [_named(item, results.class_name) for item in results.results]
    )
    count = "" if results.count is None else f',"count":{results.count}'
    name = "" if results.class_name is None else f',"className":"{results.class_name}"'
    return msgspec.Raw(b'{"results":[%b]%b}' % (items, f"{count}{name}".encode()))


def _named(item: Record | Wire, class_name: ClassName) -> bytes:
    """Return an object of another class than the queried one: it says its class, as in Parse."""
    return encode_json({**wire_object(item), "className": class_name})


def created_answer(created: Created, path: str) -> Answer:
    """The answer to a create, below whose ``path`` the object is found from now on."""
    if not created.is_new:
        return Answer(created_body(created))
    location = address_below(path, created.object_id)
    return Answer(created_body(created), status=201, headers={"Location": location})


def address_below(path: str, object_id: str) -> str:
    """Return the address of an object below a path of this service."""
    return f"{service_settings.PUBLIC_URL}{service_settings.MOUNT_PATH}{path}/{object_id}"


def created_body(created: Created) -> Wire:
    """What a create is answered with."""
    return {"objectId": created.object_id, "createdAt": created.created_at, **created.fields}


def object_body(item: Record | Wire) -> msgspec.Raw | Wire:
    """One object as JSON."""
    return msgspec.Raw(item.json().encode()) if isinstance(item, Record) else item


def find_limits() -> FindLimits:
    """The limits on what a query may ask for, from the settings."""
    return FindLimits(
        default_limit=service_settings.DEFAULT_LIMIT,
        max_limit=service_settings.MAX_LIMIT,
        include_depth=service_settings.INCLUDE_DEPTH,
        include_count=service_settings.INCLUDE_COUNT,
    )
