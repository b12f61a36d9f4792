"""Requests in the forms of official SDKs whose languages don't run here, and what their typed
clients read from responses.

Each test module of an SDK names the version whose public source its forms are from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from tests.objects.files.uploads import Sent, send

APPLICATION_ID = "test-app"
CLIENT_KEY = "test-client-key"
MASTER_KEY = "test-master-key"
REST_KEY = "test-rest-key"
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@dataclass
class Sdk:
    """An SDK: the headers of all its requests, and the media type of its JSON."""

    headers: Mapping[str, str]
    content_type: str = "application/json"
    token: str | None = None
    is_chunked: bool = False
    extra: dict[str, str] = field(default_factory=dict)

    def json(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request and return the JSON of its response, which must be a success."""
        sent = self.send(method, path, body, query=query, headers=headers)
        assert sent.status in (200, 201), (sent.status, sent.body)
        return sent.json

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str | None = None,
    ) -> Sent:
        """Send a request; ``body`` is sent as JSON unless it is bytes."""
        if query:
            path = f"{path}?{urlencode(query, quote_via=quote)}"
        raw = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        if content_type is None:
            content_type = "" if body is None else self.content_type
        chunked = self.is_chunked and bool(raw)
        coding = {"Transfer-Encoding": "chunked"} if chunked else {}
        session = {} if self.token is None else {"X-Parse-Session-Token": self.token}
        return send(
            method,
            path,
            raw,
            {**self.headers, **self.extra, **session, **coding, **(headers or {})},
            content_type=content_type,
            length=None if chunked else -1,
        )


def assert_created(body: Any) -> None:
    """What typed clients need of a response to a create."""
    assert isinstance(body["objectId"], str)
    assert _DATE.fullmatch(body["createdAt"])


def assert_updated(body: Any) -> None:
    """What typed clients need of a response to an update."""
    assert _DATE.fullmatch(body["updatedAt"])


def assert_object(body: Any) -> None:
    """What typed clients need of an object."""
    assert_created(body)
    assert_updated(body)


def assert_user(body: Any) -> None:
    """What typed clients need of a response to a sign-up or a log-in."""
    assert_created(body)
    assert isinstance(body["sessionToken"], str)


def assert_file(body: Any) -> None:
    """What typed clients need of a response to an upload."""
    assert set(body) >= {"name", "url"}
    assert isinstance(body["name"], str)
    assert body["url"].startswith("http")


def is_date(value: Any) -> bool:
    """Whether a value is a Date as all SDKs read it."""
    return (
        isinstance(value, dict)
        and value["__type"] == "Date"
        and bool(_DATE.fullmatch(value["iso"]))
    )
