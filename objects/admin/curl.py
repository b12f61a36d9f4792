"""A request as a curl command to copy, with variables in place of keys and tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from shlex import quote
from typing import Final, Literal

from backend.kernel.json_types import Json
from backend.settings.conf import service_settings

Caller = Literal["public", "user", "master"]

CALLERS: Final[Mapping[Caller, str]] = {
    "public": "a caller who isn't logged in",
    "user": "a user",
    "master": "the master key",
}
"""Whose rights a request of a page can have, as people read it."""

_HEADERS: Final[Mapping[Caller, tuple[str, ...]]] = {
    "public": ("X-Svc-REST-API-Key: $REST_API_KEY",),
    "user": ("X-Svc-REST-API-Key: $REST_API_KEY", "X-Svc-Session-Token: $SESSION_TOKEN"),
    "master": ("X-Svc-Master-Key: $MASTER_KEY",),
}


def command(
    method: str,
    path: str,
    caller: Caller,
    *,
    params: Mapping[str, str] | None = None,
    body: Mapping[str, Json] | None = None,
) -> str:
    """Return the request as a curl command for a POSIX shell.

    ``path`` follows the mount and is escaped already; ``params`` are those of the query string.
    """
    verb = "-G" if params else "" if method == "GET" else f"-X {method}"
    address = quote(f"{service_settings.PUBLIC_URL}{service_settings.MOUNT_PATH}{path}")
    lines = [" ".join(part for part in ("curl", verb, address) if part)]
    headers = ("X-Svc-Application-Id: $APP_ID", *_HEADERS[caller])
    lines += [f'-H "{header}"' for header in headers]
    lines += [
        f"--data-urlencode {quote(f'{name}={value}')}" for name, value in (params or {}).items()
    ]
    if body is not None:
        text = json.dumps(body, ensure_ascii=False)
        lines.append(f"-H {quote('Content-Type: application/json')} -d {quote(text)}")
    return " \\\n  ".join(lines)
