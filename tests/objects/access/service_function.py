"""A server function that does for its caller what the REST face does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from functions import FunctionRequest, Object, function
from functions.runtime.values import encode


@function("testDoor")
def through_the_door(request: FunctionRequest, method: str, path: str, body: dict[str, Any]) -> Any:
    """What the REST face does at ``/classes``, in the words of server code."""
    _, _, class_name, *ids = request.params["path"].split("/")
    query = request.objects(class_name)
    if method == "POST":
        return _computed(_plain(query.create(body)), body)
    if method == "PUT":
        return query.update(ids[0], body)
    if method == "DELETE":
        query.delete(ids[0])
        return {}
    params = {name: value for name, value in body.items() if name not in ("where", "count")}
    where = replace(query, params=params).where(body.get("where"))
    if ids:
        return _plain(where.get(ids[0]))
    if body.get("count") and body.get("limit") == 0 and "order" not in body:
        return {"results": [], "count": where.count()}
    results = {"results": [_plain(item) for item in where.find()]}
    return {**results, "count": where.count()} if body.get("count") else results


def _computed(created: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """As over REST, without what the caller has said itself."""
    message = {name for name, value in body.items() if "__op" not in str(value)}
    return {name: value for name, value in created.items() if name not in {*message, "updatedAt"}}


def _plain(item: Object) -> dict[str, Any]:
    wire = encode(item)
    return {name: value for name, value in wire.items() if name not in ("__type", "className")}
