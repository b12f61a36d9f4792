"""Objects of any class, batches, aggregation, parameters of the app, and classes themselves."""

from __future__ import annotations

from typing import Any

from backend.http.permissions import Requires
from backend.openapi import Operation, answer, body, parameter, ref
from backend.openapi.operations import JSON_TEXT, query
from objects.views.openapi.classes import (
    ACL_CHANGE,
    OBJECT_FIELDS,
    Forms,
    Paths,
    Words,
    results_of,
    routes,
)

Json = dict[str, Any]

_MASTER = Requires.MASTER_KEY
_OBJECT: Json = {"type": "object"}
_TIME: Json = {"type": "string", "format": "date-time"}
_OBJECT_OR_NULL: Json = {"type": ["object", "null"]}
_FLAGS: Json = {**_OBJECT_OR_NULL, "additionalProperties": {"type": ["boolean", "null"]}}

SCHEMAS: dict[str, Json] = {
    "EmptyAnswer": {"type": "object", "maxProperties": 0},
    "CreatedAnswer": {
        "type": "object",
        "description": "Beside these, fields that the service has computed.",
        "properties": {"objectId": {"type": "string"}, "createdAt": _TIME},
        "required": ["objectId", "createdAt"],
    },
    "UpdatedAnswer": {
        "type": "object",
        "description": "Beside this, the results of operators.",
        "properties": {"updatedAt": _TIME},
        "required": ["updatedAt"],
    },
    "AnyObject": {
        "type": "object",
        "description": "An object of any class: its fields are beside these.",
        "properties": {**OBJECT_FIELDS, "ACL": ref("AccessList")},
        "required": [*OBJECT_FIELDS],
    },
    "AnyResults": results_of(ref("AnyObject")),
    "AnyFields": {
        "type": "object",
        "description": "Fields by name: values, typed values, operators.",
        "properties": {"ACL": ACL_CHANGE},
    },
    "BatchItem": {
        "type": "object",
        "properties": {
            "method": {"enum": ["GET", "POST", "PUT", "DELETE"]},
            "path": {
                "type": "string",
                "description": "With the mount path: `/api/classes/Note`.",
            },
            "body": _OBJECT,
        },
        "required": ["method", "path"],
    },
    "BatchForm": {
        "type": "object",
        "properties": {
            "requests": {"type": "array", "items": ref("BatchItem")},
            "transaction": {
                "type": ["boolean", "null"],
                "default": False,
                "description": "All or nothing.",
            },
        },
        "required": ["requests"],
    },
    "BatchAnswer": {
        "type": "object",
        "properties": {"success": {}, "error": ref("ErrorAnswer")},
        "minProperties": 1,
        "maxProperties": 1,
    },
    "ConfigParameters": {
        "type": "object",
        "properties": {"params": _OBJECT_OR_NULL, "masterKeyOnly": _FLAGS},
    },
    "ClassPermissions": {
        **_OBJECT_OR_NULL,
        "description": "Who may do what: `find`, `get`, `count`, `create`, `update`, `delete`,"
        " `addField`, `readUserFields`, `writeUserFields`, `protectedFields`, `ACL`.",
    },
    "ClassField": {
        "type": "object",
        "properties": {
            "type": {
                "enum": [
                    *("String", "Number", "Boolean", "Object", "Array", "Date", "Pointer"),
                    *("GeoPoint", "Bytes", "File", "Polygon", "Relation", "ACL"),
                ]
            },
            "targetClass": {"type": "string"},
            "required": {"type": "boolean"},
            "defaultValue": {},
            "unique": {"type": "boolean"},
            "__op": {"const": "Delete", "description": "Removes the field."},
        },
    },
    "ClassSchema": {
        "type": "object",
        "properties": {
            "className": {"type": ["string", "null"]},
            "fields": {**_OBJECT_OR_NULL, "additionalProperties": ref("ClassField")},
            "classLevelPermissions": ref("ClassPermissions"),
            "indexes": {**_OBJECT_OR_NULL, "additionalProperties": _OBJECT},
        },
    },
    "ClassSchemas": {
        "type": "object",
        "properties": {"results": {"type": "array", "items": ref("ClassSchema")}},
        "required": ["results"],
    },
    "EventForm": {
        "type": "object",
        "properties": {
            "at": {"anyOf": [ref("DateValue"), {"type": "null"}]},
            "dimensions": {
                **_OBJECT_OR_NULL,
                "additionalProperties": {"type": "string", "maxLength": 256},
                "maxProperties": 8,
            },
        },
    },
    "EventCounts": {
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "day": {"type": "string", "format": "date"},
                        "name": {"type": "string"},
                        "count": {"type": "integer"},
                        "value": {"type": ["string", "null"]},
                    },
                    "required": ["day", "name", "count"],
                },
            }
        },
        "required": ["results"],
    },
    "AggregateResults": {
        "type": "object",
        "properties": {"results": {"type": "array", "items": {}}},
        "required": ["results"],
    },
}

_OBJECTS = Words(
    "Objects",
    "an object",
    "objects",
    {
        "find": "listObjects",
        "create": "addObject",
        "get": "readObject",
        "update": "changeObject",
        "delete": "removeObject",
    },
)
_ANY = Forms("AnyObject", "AnyFields", "AnyFields", "AnyResults", "PointerValue")


def any_objects() -> Paths:
    """``/classes/{className}``."""
    return routes(
        "/classes/{className}", _ANY, _OBJECTS, ("find", "create", "get", "update", "delete")
    )


def events() -> Paths:
    """``/events``."""
    span: Json = {"type": "string", "format": "date-time"}
    asked = (
        query("since", span, "From when on; 30 days before `until` unless it is given."),
        query("until", span, "Until when; now unless it is given."),
        query("dimension", {"type": "string"}, "Count by the values of this dimension, too."),
    )
    counts = {"200": answer("Counts by day.", ref("EventCounts"))}
    return {
        "/events/{name}": {
            "post": Operation(
                "reportEvent",
                "Events",
                "Report an event",
                {"200": answer("It is kept.", ref("EmptyAnswer"))},
                body=body(ref("EventForm"), required=False),
            ),
            "get": Operation(
                "countEvents",
                "Events",
                "How many events of a name there were",
                counts,
                requires=_MASTER,
                parameters=asked,
            ),
        },
        "/events": {
            "get": Operation(
                "countAllEvents",
                "Events",
                "How many events there were",
                counts,
                requires=_MASTER,
                parameters=asked,
            )
        },
    }


def others() -> Paths:
    """``/batch``, ``/config``, ``/schemas``, ``/purge``, ``/aggregate``."""
    schema = answer("The class.", ref("ClassSchema"))
    done = {"200": answer("It is done.", ref("EmptyAnswer"))}
    return {
        "/batch": {
            "post": Operation(
                "batch",
                "Batch",
                "Several requests in one, in order",
                {
                    "200": answer(
                        "One answer for each request.",
                        {"type": "array", "items": ref("BatchAnswer")},
                    )
                },
                body=body(ref("BatchForm")),
            )
        },
        "/config": {
            "get": Operation(
                "readConfig",
                "Config",
                "The parameters of the app",
                {"200": answer("The parameters.", ref("ConfigParameters"))},
            ),
            "put": Operation(
                "changeConfig",
                "Config",
                "Set and remove parameters of the app",
                {
                    "200": answer(
                        "They are saved.",
                        {"type": "object", "properties": {"result": {"type": "boolean"}}},
                    )
                },
                requires=_MASTER,
                body=body(ref("ConfigParameters"), required=False),
            ),
        },
        "/schemas": {
            "get": Operation(
                "listClasses",
                "Classes",
                "All classes",
                {"200": answer("The classes.", ref("ClassSchemas"))},
                requires=_MASTER,
            ),
            "post": Operation(
                "addNamedClass",
                "Classes",
                "Create the class that the body names",
                {"200": schema},
                requires=_MASTER,
                body=body(ref("ClassSchema")),
            ),
        },
        "/schemas/{className}": {
            "get": Operation("readClass", "Classes", "A class", {"200": schema}, requires=_MASTER),
            "post": Operation(
                "addClass",
                "Classes",
                "Create a class",
                {"200": schema},
                requires=_MASTER,
                body=body(ref("ClassSchema"), required=False),
            ),
            "put": Operation(
                "changeClass",
                "Classes",
                "Change fields, permissions and indexes of a class",
                {"200": schema},
                requires=_MASTER,
                body=body(ref("ClassSchema"), required=False),
            ),
            "delete": Operation(
                "removeClass", "Classes", "Remove an empty class", done, requires=_MASTER
            ),
        },
        "/purge/{className}": {
            "delete": Operation(
                "purgeClass", "Classes", "Remove all objects of a class", done, requires=_MASTER
            )
        },
        "/aggregate/{className}": {
            "get": Operation(
                "aggregate",
                "Objects",
                "Run a pipeline, or list the distinct values of a field",
                {"200": answer("The outcome.", ref("AggregateResults"))},
                requires=_MASTER,
                parameters=(
                    query(
                        "pipeline",
                        JSON_TEXT,
                        'Stages as JSON: `[{"$group": {"_id": "$city", "n": {"$sum": 1}}}]`.',
                    ),
                    query("distinct", {"type": "string"}, "The field whose values to list."),
                    parameter("where"),
                ),
                description="Stages can also be parameters themselves: `$match`, `$group`, …",
            )
        },
    }
