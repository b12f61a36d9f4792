"""The REST face under test: Django's test client through the whole middleware chain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

APPLICATION = {"X-Svc-Application-Id": "test-app"}
CLIENT = {**APPLICATION, "X-Svc-REST-API-Key": "test-rest-key"}
MASTER = {**APPLICATION, "X-Svc-Master-Key": "test-master-key"}
MAINTENANCE = {**APPLICATION, "X-Svc-Maintenance-Key": "test-maintenance-key"}
READ_ONLY = {**APPLICATION, "X-Svc-Master-Key": "test-read-only-key"}


@cache
def _factory() -> Any:
    """Django's test client without cookies, with one chain of middleware for all requests: making
    the chain takes as long as many a request."""
    from django.test import RequestFactory
    from django.test.client import ClientHandler

    handler = ClientHandler(enforce_csrf_checks=False)

    class Factory(RequestFactory):
        def request(self, **request: Any) -> Any:
            return handler(self._base_environ(**request))

    return Factory()


@dataclass
class Reply:
    """An answer: its status, its headers and its JSON."""

    status: int
    json: Any
    headers: Mapping[str, str]

    @property
    def error(self) -> tuple[int, int]:
        """Status and code of an error."""
        assert set(self.json) == {"code", "error"}
        return self.status, self.json["code"]


@dataclass
class Api:
    """Calls below the mount path with the headers of one kind of caller."""

    headers: dict[str, str] = field(default_factory=dict)
    mount: str = "/api"

    def call(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **options: Any
    ) -> Reply:
        content_type = options.pop("content_type", "application/json")
        headers = {**self.headers, **options.pop("headers", {})}
        if raw is None:
            raw = b"" if body is None else json.dumps(body).encode()
        response = _factory().generic(
            method, self.mount + path, raw, content_type=content_type, headers=headers, **options
        )
        parsed = json.loads(response.content) if response.content else None
        return Reply(response.status_code, parsed, response.headers)

    def get(self, path: str, **params: Any) -> Reply:
        query = urlencode(
            {k: v if isinstance(v, str) else json.dumps(v) for k, v in params.items()}
        )
        return self.call("GET", f"{path}?{query}" if query else path)

    def post(self, path: str, body: Any = None) -> Reply:
        return self.call("POST", path, {} if body is None else body)

    def put(self, path: str, body: Any) -> Reply:
        return self.call("PUT", path, body)

    def delete(self, path: str) -> Reply:
        return self.call("DELETE", path)

    def make(self, class_name: str, **fields: Any) -> str:
        """Create an object and return its id. What is made next is younger by its createdAt,
        which has milliseconds."""
        reply = self.post(f"/classes/{class_name}", fields)
        answered = perf_counter()
        assert reply.status == 201, reply.json
        while perf_counter() < answered + 0.001:
            pass
        object_id: str = reply.json["objectId"]
        return object_id

    def results(self, class_name: str, **params: Any) -> list[dict[str, Any]]:
        """The objects that a query finds."""
        reply = self.get(f"/classes/{class_name}", **params)
        assert reply.status == 200, reply.json
        matches: list[dict[str, Any]] = reply.json["results"]
        return matches
