"""The document in the hands of tests."""

from __future__ import annotations

from collections.abc import Iterator

from backend.kernel.json_types import JsonObject
from tests.rest import Api

METHODS = ("get", "post", "put", "delete")


def document(caller: Api) -> JsonObject:
    """The document as this caller gets it."""
    reply = caller.get("/openapi.json")
    assert reply.status == 200, reply.json
    body: JsonObject = reply.json
    return body


def operations(api: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Path, method and description of every operation."""
    for path, item in api["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def schema(api: JsonObject, name: str) -> JsonObject:
    """A component schema."""
    schemas: JsonObject = api["components"]["schemas"][name]
    return schemas


def closed(api: JsonObject, name: str) -> JsonObject:
    """A component schema with everything that it refers to, for a validator."""
    return {"$ref": f"#/components/schemas/{name}", "components": api["components"]}
