"""The document in the hands of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.rest import Api

Json = dict[str, Any]
METHODS = ("get", "post", "put", "delete")


def document(caller: Api) -> Json:
    """The document as this caller gets it."""
    reply = caller.get("/openapi.json")
    assert reply.status == 200, reply.json
    found: Json = reply.json
    return found


def operations(api: Json) -> Iterator[tuple[str, str, Json]]:
    """Path, method and description of every operation."""
    for path, item in api["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def schema(api: Json, name: str) -> Json:
    """A component schema."""
    found: Json = api["components"]["schemas"][name]
    return found


def closed(api: Json, name: str) -> Json:
    """A component schema with everything that it refers to, for a validator."""
    return {"$ref": f"#/components/schemas/{name}", "components": api["components"]}
