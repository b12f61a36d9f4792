"""Requests as the server hands them over, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from backend.http.edge.wsgi_request import Utf8Request

_ENVIRONMENT = {
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "8000",
    "wsgi.url_scheme": "http",
    "REMOTE_ADDR": "",
}


def request(
    method: str, path: str, meta: Mapping[str, Any] | None = None, body: bytes = b""
) -> Utf8Request:
    """A request with this body, and these entries in its environment."""
    environment = {
        **_ENVIRONMENT,
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
        **(meta or {}),
    }
    return Utf8Request(environment)
