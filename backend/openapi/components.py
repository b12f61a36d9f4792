"""The components that every operation shares: errors, credentials, headers, parameters."""

from __future__ import annotations

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Schema
from backend.openapi.operations import JSON_TEXT, query
from backend.openapi.schemas import ref
from backend.settings.conf import service_settings

SECURITY_SCHEMES: Schema = {
    name: {"type": "apiKey", "in": "header", "name": header, "description": description}
    for name, header, description in (
        ("applicationId", "X-Svc-Application-Id", "Which application; every request has it."),
        (
            "restApiKey",
            "X-Svc-REST-API-Key",
            "The key of clients. `X-Svc-JavaScript-Key` and `X-Svc-Client-Key` count the same.",
        ),
        (
            "masterKey",
            "X-Svc-Master-Key",
            "Full access, for servers only; a read-only master key goes here too.",
        ),
        (
            "maintenanceKey",
            "X-Svc-Maintenance-Key",
            "For imports and exports: as the master key for objects; sets their times as well.",
        ),
        ("sessionToken", "X-Svc-Session-Token", "The user's session, from signing up or in."),
    )
}

# What a status means, and an error that has it.
_STATUSES = {
    "400": (
        "The request can't be done as it is; the code says why.",
        {"code": 102, "error": "limit: expected a whole number"},
    ),
    "403": (
        "Not with these credentials.",
        {"code": 262, "error": "unauthorized"},
    ),
    "404": (
        "There is no such object, or not for this caller.",
        {"code": 101, "error": "Object not found."},
    ),
    "413": (
        "The body is too large.",
        {"code": 116, "error": "The request body is larger than 20971520 bytes."},
    ),
    "415": (
        "The body is not of a type that is read here.",
        {"code": 108, "error": "The request body must be JSON (Content-Type: application/json)."},
    ),
    "429": (
        "Too many requests; `Retry-After` says when to try again.",
        {"code": 100, "error": "Too many requests. Try again in 7 seconds."},
    ),
    "500": (
        "An internal error. The text has the request id, for the log.",
        {"code": 1, "error": "Internal server error. Request id: 8ad6b2…"},
    ),
    "503": (
        "Something that the service needs can't be reached at the moment.",
        {"code": 1, "error": "The database can't be reached."},
    ),
}
_LIMIT_HEADERS = {
    name: {"description": description, "schema": {"type": "integer"}}
    for name, description in (
        ("Retry-After", "Seconds after which the request can be repeated."),
        ("RateLimit-Limit", "How many requests the rule allows."),
        ("RateLimit-Remaining", "How many are left."),
        ("RateLimit-Reset", "Seconds until all of them are there again."),
    )
}
HEADERS: Schema = {
    "Location": {
        "description": "The address of what was made.",
        "required": True,
        "schema": {"type": "string", "format": "uri"},
    },
    "ETag": {"description": "For `If-None-Match`.", "schema": {"type": "string"}},
}


def error_schema() -> Schema:
    """Return ``ErrorAnswer``: the form of every failure, and the codes that there are."""
    rows = "\n".join(
        f"| {code} | {status} | {', '.join(names)} |"
        for (code, status), names in sorted(_codes().items())
    )
    return {
        "type": "object",
        "description": f"Every failure.\n\n| code | status | |\n|---|---|---|\n{rows}",
        "properties": {
            "code": {"type": "integer", "description": "What is wrong, for programs."},
            "error": {"type": "string", "description": "What is wrong, for people."},
        },
        "required": ["code", "error"],
        "examples": [{"code": 101, "error": "Object not found."}],
    }


def _codes() -> dict[tuple[int, int], list[str]]:
    """The names of errors by code and status."""
    names: dict[tuple[int, int], list[str]] = {}
    remaining: list[type[ServiceError]] = [ServiceError]
    while remaining:
        kind = remaining.pop()
        remaining.extend(kind.__subclasses__())
        if kind is not ServiceError:
            names.setdefault((kind.code, kind.status), []).append(kind.__name__)
    return {key: sorted(set(each)) for key, each in names.items()}


def responses() -> Schema:
    """Return the errors by their status."""
    schema = ref("ErrorAnswer")
    responses: Schema = {
        status: {
            "description": description,
            "content": {"application/json": {"schema": schema, "example": example}},
        }
        for status, (description, example) in _STATUSES.items()
    }
    responses["429"]["headers"] = _LIMIT_HEADERS
    return responses


def parameters() -> Schema:
    """Return the parameters that several operations share."""
    settings = service_settings
    text = {"type": "string"}
    largest = 2**31 - 1
    shared = [
        query("where", JSON_TEXT, 'Constraints as JSON: `{"stars": {"$gte": 3}}`.'),
        query(
            "limit",
            {
                "type": "integer",
                "minimum": 0,
                "maximum": largest,
                "default": settings.DEFAULT_LIMIT,
            },
            f"How many results at most; never more than {settings.MAX_LIMIT}.",
        ),
        query(
            "skip",
            {"type": "integer", "minimum": 0, "maximum": largest, "default": 0},
            "How many results to leave out at the beginning.",
        ),
        query("order", text, "Fields to sort by, with commas; `-` before one for descending."),
        query("keys", text, "Fields to send, with commas; dotted into included objects."),
        query("excludeKeys", text, "Fields to leave out, with commas."),
        query("include", text, "Pointers to follow, with commas; dotted; `*` for all."),
        query(
            "count",
            {"type": "boolean", "default": False},
            "Whether to count all that the query finds; with `limit=0` nothing else is sent.",
        ),
        query(
            "redirectClassNameForKey",
            text,
            "Find objects of the class that this field leads to instead.",
        ),
    ]
    return {each["name"]: each for each in shared}


_OBJECT_ID = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}$"}
_IN_PATHS: dict[str, tuple[str, Schema]] = {
    "className": (
        "The name of a class.",
        {"type": "string", "pattern": "^_?[A-Za-z][A-Za-z0-9_]{0,127}$"},
    ),
    "objectId": ("The id of an object.", _OBJECT_ID),
    "appId": ("The application id.", {"type": "string", "minLength": 1}),
}


def path_parameter(name: str) -> Schema:
    """Return the parameter for a name in a path."""
    description, schema = _IN_PATHS.get(name, ("", {"type": "string", "minLength": 1}))
    parameter: Schema = {"name": name, "in": "path", "required": True, "schema": schema}
    return {**parameter, "description": description} if description else parameter
