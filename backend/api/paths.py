"""How a path is read: decoded once, in UTF-8, without control characters.

This is the one place where the bytes of a path become text, for requests and for the items of a
batch. Whatever another layer could read differently (a NUL that ends a C string, bytes that aren't
UTF-8 and that each library replaces in its own way, escapes that are left after decoding) is
refused here, before a route is chosen.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from django.utils.encoding import repercent_broken_unicode

from backend.api.routing import resolve
from backend.errors import CommandUnavailable, InvalidClassName, InvalidKeyName, ServiceError
from objects.core.names import shown

# Control characters and halves of surrogate pairs.
_UNREADABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Escapes that are left after decoding, of control characters and of bytes beyond ASCII: a layer
# that decodes twice would read them. Django leaves bytes encoded that aren't UTF-8.
_ESCAPED = re.compile(r"%(?:[0189a-f][0-9a-f]|7f)", re.IGNORECASE)


def check_path(path: str, mount: str) -> None:
    """Refuse a decoded path with control characters, as characters or percent-encoded again, and
    one that wasn't UTF-8.

    Raises ``InvalidClassName`` (103) or ``InvalidKeyName`` (105) if they are in a name of a route,
    and ``CommandUnavailable`` (108) where there is no such route.
    """
    if not _is_readable(path):
        raise _refusal(path, mount)


def decode_path(path: str) -> str:
    """Decode the path of a batch's item as the server decodes that of a request."""
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
    for name, value in route[1].items():
        if not _is_readable(value):
            if name == "class_name":
                return InvalidClassName(f"Invalid classname: {shown(value)}")
            return InvalidKeyName(f"Invalid {name}: {shown(value)}")
    return InvalidKeyName("The path must not contain control characters.")
