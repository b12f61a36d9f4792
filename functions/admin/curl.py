"""A call as a curl command to copy, with variables in place of keys and tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from shlex import quote
from typing import Final, Literal
from urllib.parse import quote as escaped

from backend.kernel.json_types import Json
from backend.settings.conf import service_settings

Caller = Literal["public", "user", "master"]

_HEADERS: Final[Mapping[Caller, tuple[str, ...]]] = {
    "public": ("X-Svc-REST-API-Key: $REST_API_KEY",),
    "user": ("X-Svc-REST-API-Key: $REST_API_KEY", "X-Svc-Session-Token: $SESSION_TOKEN"),
    "master": ("X-Svc-Master-Key: $MASTER_KEY",),
}


def command(name: str, params: Mapping[str, Json], caller: Caller) -> str:
    """Return the call as a curl command for a POSIX shell."""
    address = (
        f"{service_settings.PUBLIC_URL}{service_settings.MOUNT_PATH}/functions/{escaped(name)}"
    )
    headers = ("X-Svc-Application-Id: $APP_ID", *_HEADERS[caller])
    body = json.dumps(params, ensure_ascii=False)
    lines = (
        f"curl -X POST {quote(address)}",
        *(f'-H "{header}"' for header in headers),
        f"-H {quote('Content-Type: application/json')} -d {quote(body)}",
    )
    return " \\\n  ".join(lines)
