"""Paths are decoded once, as UTF-8, and must not contain control characters.

Only this module turns the bytes of a path into text, for requests and for the items of a batch.
Before a route is chosen, it refuses paths that other layers could read differently: a NUL, which
ends a C string; bytes that aren't UTF-8, which libraries replace differently; and escapes that
remain after decoding.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from django.utils.encoding import repercent_broken_unicode

from backend.http.edge.routing import resolve
from backend.kernel.errors import (
    CommandUnavailable,
    InvalidClassName,
    InvalidKeyName,
    ServiceError,
)
from backend.kernel.texts.shown import shown

# Control characters and halves of surrogate pairs.
_UNREADABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Escapes of control characters and of bytes beyond ASCII that remain after decoding. A layer that
# decodes twice would read them. Django leaves bytes that aren't UTF-8 percent-encoded.
_ESCAPED = re.compile(r"%(?:[0189a-f][0-9a-f]|7f)", re.IGNORECASE)


def check_path(path: str, mount: str) -> None:
    """Refuse a decoded path that isn't UTF-8 or contains control characters, even encoded twice.

    Raises ``InvalidClassName`` (103) or ``InvalidKeyName`` (105) if a parameter of the route is
    invalid, and ``CommandUnavailable`` (108) if no route matches.
    """
    if not _is_readable(path):
        raise _refusal(path, mount)


def decode_path(path: str) -> str:
    """Decode the path of a batch item in the same way as the path of a request."""
    if "%" not in path:
        return path
    decoded = unquote_to_bytes(path.encode("utf-8", "surrogatepass"))
    return repercent_broken_unicode(decoded).decode()


def _is_readable(path: str) -> bool:
    if not path.isprintable() and _UNREADABLE.search(path) is not None:
        return False
    return "%" not in path or _ESCAPED.search(path) is None


def _refusal(path: str, mount: str) -> ServiceError:
    route = resolve(path[len(mount) :]) if path.startswith(f"{mount}/") else None
    if route is None:
        return CommandUnavailable("The path must not contain control characters.")
    for name, value in route.names.items():
        if not _is_readable(value):
            if name == "class_name":
                return InvalidClassName(f"Invalid classname: {shown(value)}")
            return InvalidKeyName(f"Invalid {name}: {shown(value)}")
    return InvalidKeyName("The path must not contain control characters.")
