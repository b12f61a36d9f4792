"""The size limit of a request's body, by its route and its caller.

The server applies it before it reads a body, and views when they read it. JSON of clients is
limited to ``MAX_CLIENT_BODY_SIZE``, JSON of the master key to ``MAX_BODY_SIZE``. SDKs may send the
master key inside the body. Such a body is received up to the higher limit, but decoded only if its
bytes contain the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from itertools import islice
from typing import Any, Final

from backend.http import authentication
from backend.http.authentication import Credentials
from backend.http.bodies import substrings
from backend.http.context import client_address
from backend.server.refusals import too_large
from backend.settings.conf import service_settings

Environ = MutableMapping[str, Any]

AROUND_FILE: Final = 64 * 1024
"""Bytes that a form or a JSON body may have in addition to a file."""
_NAME: Final = b'"_MasterKey"'
_VALUE: Final = re.compile(rb'\s{0,8}:\s{0,8}"([^"\\]{1,512})"')
_NAMES: Final = 1000
"""Occurrences of the key's name in one body that are examined."""
_CLAIMS: Final = 8
"""Keys in one body that are compared with the master key."""


def is_rest(path: str) -> bool:
    """Whether REST answers this path, and not Django."""
    mount = service_settings.MOUNT_PATH
    return path.startswith(mount) and path[len(mount) : len(mount) + 1] in ("/", "")


def body_limit(environ: Environ) -> int:
    """Return the largest size of this request's body, in bytes. Fast, without I/O."""
    path = environ["PATH_INFO"]
    if not is_rest(path):
        return service_settings.MAX_BODY_SIZE
    if path.startswith("/files/", len(service_settings.MOUNT_PATH)):
        return _file_limit(environ)
    return json_limit(environ)


def _file_limit(environ: Environ) -> int:
    if environ["REQUEST_METHOD"] != "POST":
        return json_limit(environ)
    if authentication.of_request(environ).application_id is None:
        return json_upload_limit()
    is_form = environ.get("CONTENT_TYPE", "").lower().startswith("multipart/")
    return service_settings.MAX_UPLOAD_SIZE + (AROUND_FILE if is_form else 0)


def json_upload_limit() -> int:
    """Return the largest size of a JSON body with a file in base64.

    5/3 leaves room for base64 (4/3) and for escaped characters.
    """
    return service_settings.MAX_UPLOAD_SIZE * 5 // 3 + AROUND_FILE


def json_limit(environ: Environ) -> int:
    """Return the largest size of this request's JSON, in bytes."""
    credentials = authentication.of_request(environ)
    if credentials.application_id is None:
        return service_settings.MAX_BODY_SIZE
    if any(_keys_match(credentials, environ)):
        return service_settings.MAX_BODY_SIZE
    return min(service_settings.MAX_CLIENT_BODY_SIZE, service_settings.MAX_BODY_SIZE)


def check_may_decode(environ: Environ, raw: bytes) -> None:
    """Raise ``ObjectTooLarge`` for a body over the clients' limit without a valid master key."""
    limit = service_settings.MAX_CLIENT_BODY_SIZE
    if len(raw) <= limit:
        return
    credentials = authentication.of_request(environ)
    if credentials.application_id is not None:
        matches = _keys_match(credentials, environ)
    else:
        address = client_address(environ)
        claimed = list(islice(_claimed_keys(raw), _CLAIMS))
        matches = [authentication.is_master_key(key, address) for key in claimed]
    if not any(matches):
        raise too_large(limit)


def _keys_match(credentials: Credentials, environ: Environ) -> list[bool]:
    """Return whether each of the keys that raise the limit is the right one."""
    master_key, maintenance_key = credentials.master_key, credentials.maintenance_key
    if master_key is None and maintenance_key is None:
        return []
    address = client_address(environ)
    matches = []
    if master_key is not None:
        matches.append(authentication.is_master_key(master_key, address))
    if maintenance_key is not None:
        matches.append(authentication.is_maintenance_key(maintenance_key, address))
    return matches


def _claimed_keys(raw: bytes) -> Iterator[str]:
    """Yield the texts that a JSON document, which isn't decoded, may have as the master key."""
    for start in islice(substrings.occurrences(raw, _NAME), _NAMES):
        match = _VALUE.match(raw, start + len(_NAME))
        if match is not None:
            yield match[1].decode("utf-8", "replace")


def answers_too_large(environ: Environ) -> bool:
    """Whether the application itself answers a body over the limit."""
    return is_rest(environ["PATH_INFO"])
