"""Uploads and downloads over the WSGI application, as the web server hands them over."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from backend.endpoints.middleware import disconnect_connection_signals
from backend.wsgi import application
from tests.rest import MASTER

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


@dataclass
class Sent:
    """An answer: status, headers with names in lower case, the whole body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, int]:
        """Status and code of an error."""
        assert set(self.json) == {"code", "error"}
        assert self.headers["content-type"] == "application/json"
        return self.status, self.json["code"]


def send(
    method: str,
    path: str,
    body: bytes | io.RawIOBase | Any = b"",
    headers: Mapping[str, str] | None = None,
    *,
    content_type: str = "",
    length: int | str | None = -1,
) -> Sent:
    """One request. ``length`` is the Content-Length: -1 the true one, None a chunked body."""
    bare, _, query = path.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        # As WSGI has it: the bytes of the path, as if they were Latin-1.
        "PATH_INFO": (bare if bare.startswith("/api") else f"/api{bare}")
        .encode()
        .decode("latin-1"),
        "SCRIPT_NAME": "",
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost",
        "CONTENT_TYPE": content_type,
        "wsgi.input": io.BytesIO(body) if isinstance(body, bytes) else body,
        "wsgi.input_terminated": True,
        "wsgi.url_scheme": "http",
    }
    if length is not None:
        environ["CONTENT_LENGTH"] = str(len(body) if length == -1 else length)
    for name, value in (headers or {}).items():
        environ[f"HTTP_{name.upper().replace('-', '_')}"] = value
    answer: dict[str, Any] = {}

    def start_response(status: str, fields: list[tuple[str, str]]) -> None:
        answer.update(status=int(status[:3]), headers={n.lower(): v for n, v in fields})

    disconnect_connection_signals()  # as in the web process; Django's test client connects them
    result = application(environ, start_response)
    content = b"".join(result)
    if hasattr(result, "close"):
        result.close()
    return Sent(answer["status"], answer["headers"], content)


def upload(
    name: str,
    body: bytes = PNG,
    content_type: str = "",
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Sent:
    """A raw upload, with the master key by default."""
    return send(
        "POST", f"/files/{name}", body, headers or MASTER, content_type=content_type, **options
    )


def stored(name: str, body: bytes = PNG, content_type: str = "", **options: Any) -> str:
    """Upload a file with the master key; the name that it has been given."""
    answer = upload(name, body, content_type, **options)
    assert answer.status == 201, answer.body
    value: str = answer.json["name"]
    return value


def file_path(name: str) -> str:
    """Where a file is, below the mount path."""
    return f"/files/test-app/{name}"


def stored_names() -> set[str]:
    """The names of everything in storage and on its way there."""
    folder = Path(settings.DATA_DIR)
    places = (folder / "files", folder / "uploads")
    return {path.name for place in places for path in place.rglob("*") if path.is_file()}
