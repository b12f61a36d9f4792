"""Texts that have broken servers, and calls that put them wherever a client may write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

from tests.rest import Api, Reply

TEXTS = [
    "' OR 1=1 --",
    "'; DROP TABLE objects_class; --",
    'a"b',
    "a\\'b\\",
    "%s %(x)s $1 {0}",
    "a{b,c}d",
    "__proto__",
    "$where",
    "data->'x')::int; --",
    "x\x00y",
    "x\ny\r\nz",
    "𝄞☃é",
    "../../etc/passwd",
    "role:Admin",
    "a..b",
    '{"$gt":""}',
    "A" * 3000,
]

HEADERS = (
    "X-Svc-Application-Id",
    "X-Svc-REST-API-Key",
    "X-Svc-Master-Key",
    "X-Svc-Session-Token",
    "X-Svc-Installation-Id",
    "X-Svc-Client-Version",
    "X-Svc-Request-Id",
    "X-Request-Id",
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "Authorization",
    "Host",
    "Origin",
    "Content-Type",
)


def calls(api: Api, object_id: str, text: str) -> Iterator[tuple[str, Callable[[], Reply]]]:
    """Every position of every route, with this text in it."""
    safe = quote(text, safe="")
    query = {"_method": "GET"}

    def get(path: str, **params: Any) -> Callable[[], Reply]:
        encoded = {k: v if isinstance(v, str) else json.dumps(v) for k, v in params.items()}
        return lambda: api.call("GET", f"{path}?{urlencode(encoded)}")

    def find(**params: Any) -> Callable[[], Reply]:
        return get("/classes/Game", **params)

    def post(path: str, body: Any) -> Callable[[], Reply]:
        return lambda: api.post(path, body)

    def put(path: str, body: Any) -> Callable[[], Reply]:
        return lambda: api.put(path, body)

    game = f"/classes/Game/{object_id}"
    # Paths
    for prefix in ("/classes/", "/schemas/", "/purge/", "/aggregate/", "/", "/classes/Game/"):
        for method in ("GET", "PUT", "DELETE"):
            if (prefix, method) != ("/", "DELETE"):
                yield f"{method} {prefix}", lambda m=method, p=prefix: api.call(m, p + safe, {})
    yield "POST /classes/", post(f"/classes/{safe}", {"a": 1})
    yield "POST /schemas/", post(f"/schemas/{safe}", {})
    # Queries
    for where in (
        {text: 1},
        {f"info.{text}": 1},
        {"name": text},
        {"name": {text: 1}},
        {"name": {"$gt": text}},
        {"name": {"$in": [text, {"a": text}]}},
        {"name": {"$regex": text}},
        {"name": {"$regex": "a", "$options": text}},
        {"name": {"$text": {"$search": {"$term": text}}}},
        {"$text": {"$search": {"$term": "a", "$language": text}}},
        {"info": {text: text}},
        {"tags": text},
        {"tags": {"$all": [text]}},
        {"tags": {"$containedBy": [text]}},
        {"objectId": text},
        {"createdAt": {"$gt": text}},
        {"createdAt": {"$gt": {"$relativeTime": text}}},
        {"owner": {"__type": "Pointer", "className": text, "objectId": text}},
        {"owner": {"$inQuery": {"className": text, "where": {}}}},
        {"owner": {"$inQuery": {"className": "Game", "where": {text: text}}}},
        {"owner": {"$inQuery": {"className": "Game", "order": text}}},
        {"name": {"$select": {"query": {"className": "Game"}, "key": text}}},
        {"$relatedTo": {"object": pointer("Game", object_id), "key": text}},
        {"$relatedTo": {"object": pointer(text, text), "key": "a"}},
        {"$or": [{text: text}, {"name": text}]},
        {"spot": {"$nearSphere": pointer(text, text)}},
    ):
        yield f"where {where}", find(where=where)
    for name in (
        "where",
        "order",
        "keys",
        "excludeKeys",
        "include",
        "includeAll",
        "limit",
        "skip",
        "count",
        "redirectClassNameForKey",
        "hint",
        "comment",
        "readPreference",
        text[:100],
    ):
        yield f"find {name}", find(**{name: text})
        yield f"find {name} in a body", post("/classes/Game", {**query, name: [text]})
        yield f"get {name}", get(game, **{name: text})
    # Writes
    for body in (
        {text: 1},
        {f"info.{text}": 1},
        {"info": {text: 1}},
        {"name": text},
        {"tags": [text, {text: text}]},
        {"tags": {"__op": "AddUnique", "objects": [text]}},
        {"tags": {"__op": text, "objects": [1]}},
        {"score": {"__op": "Increment", "amount": text}},
        {text: {"__op": "Increment", "amount": 1}},
        {"owner": {"__type": "Pointer", "className": text, "objectId": text}},
        {"friends": {"__op": "AddRelation", "objects": [pointer("Game", text)]}},
        {"when": {"__type": "Date", "iso": text}},
        {"file": {"__type": "File", "name": text, "url": text}},
        {"odd": {"__type": text}},
        {"data": {"__type": "Bytes", "base64": text}},
        {"ACL": {text: {"read": True}}},
        {"ACL": {"*": {text: True}}},
        {"_method": text},
        {"_ApplicationId": text, "_SessionToken": text},
    ):
        yield f"create {body}", post("/classes/Game", body)
        yield f"update {body}", put(game, body)
    for item in (
        {"method": text, "path": "/api/classes/Game"},
        {"method": "GET", "path": text},
        {"method": "GET", "path": f"/api/classes/{text}"},
        {"method": "GET", "path": f"/api/classes/Game?where={text}"},
    ):
        yield f"batch {item}", post("/batch", {"requests": [item]})
    # Schemas
    for schema in (
        {"fields": {text: {"type": "String"}}},
        {"fields": {"a": {"type": text}}},
        {"fields": {"a": {"type": "Pointer", "targetClass": text}}},
        {"fields": {text: {"__op": "Delete"}}},
        {"indexes": {text: {"name": 1}}},
        {"indexes": {"a": {text: 1}}},
        {"indexes": {"a": {"name": text}}},
        {"indexes": {text: {"__op": "Delete"}}},
        {"classLevelPermissions": {text: {"*": True}}},
        {"classLevelPermissions": {"find": {text: True}}},
        {"classLevelPermissions": {"find": {"pointerFields": [text]}}},
        {"classLevelPermissions": {"protectedFields": {text: ["name"]}}},
        {"classLevelPermissions": {"protectedFields": {"*": [text]}}},
        {"classLevelPermissions": {"ACL": {text: {"read": True}}}},
        {"className": text},
    ):
        yield f"schema {schema}", put("/schemas/Other", schema)
    # Pipelines
    for params in (
        {"distinct": text},
        {"distinct": "name", "where": {text: text}},
        {"pipeline": text},
        {"pipeline": [{text: {}}]},
        {"pipeline": [{"$match": {text: text}}]},
        {"pipeline": [{"$group": {"_id": f"${text}"}}]},
        {"pipeline": [{"$group": {"_id": None, text: {"$sum": 1}}}]},
        {"pipeline": [{"$group": {"_id": None, "a": {text: 1}}}]},
        {"pipeline": [{"$project": {text: 1}}]},
        {"pipeline": [{"$addFields": {text: text}}]},
        {"pipeline": [{"$sort": {text: 1}}]},
        {"pipeline": [{"$unwind": f"${text}"}]},
        {"pipeline": [{"$count": text}]},
        {
            "pipeline": [
                {"$lookup": {"from": text, "localField": text, "foreignField": text, "as": text}}
            ]
        },
        {text: text},
    ):
        yield f"aggregate {params}", get("/aggregate/Game", **params)


def pointer(class_name: str, object_id: str) -> dict[str, Any]:
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}
