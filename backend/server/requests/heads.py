"""Request line and headers to a WSGI environment. Pure: no I/O, no Django.

httptools (llhttp in strict mode) has already split the head and refused malformed HTTP. This module
refuses the other heads that two parsers could read differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from backend.kernel.errors import InvalidJSON
from backend.server.refusals import MalformedRequest

Field = tuple[bytes, bytes]

_BAD_PERCENT: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(rb"[\x00-\x20\x7f]")
_ABSOLUTE: Final = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_DIGITS: Final = re.compile(rb"[0-9]{1,18}")
# Fields with one value. If repeated, one parser would read the first and another the last.
_SINGLE: Final = frozenset(
    {
        *(b"host", b"content-type", b"content-length", b"content-encoding", b"content-range"),
        *(b"transfer-encoding", b"authorization", b"proxy-authorization", b"origin", b"referer"),
        *(b"range", b"if-range", b"if-modified-since", b"if-unmodified-since", b"user-agent"),
        *(b"expect", b"upgrade", b"x-request-id", b"x-csrftoken", b"x-http-method-override"),
        *(b"sec-websocket-key", b"sec-websocket-version"),
    }
)
_SINGLE_PREFIXES: Final = (b"x-svc-", b"x-parse-")
# Fields about the client that only a trusted proxy may set.
_FORWARDED: Final = frozenset(
    {
        *(b"forwarded", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"),
        *(b"x-forwarded-port", b"x-forwarded-prefix", b"x-real-ip"),
    }
)
# "Proxy" would become HTTP_PROXY, which libraries read as a setting (httpoxy, CVE-2016-5385).
_DROPPED: Final = frozenset({b"proxy"})


def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Return the path (still percent-encoded) and the query string of a request target.

    Accepts ``/path?query``, ``*``, and the absolute form, whose scheme and authority are dropped.
    Raises ``MalformedRequest``.
    """
    if target == b"*":
        return b"*", b""
    if not target.startswith(b"/"):
        match = _ABSOLUTE.match(target)
        if match is None:
            raise MalformedRequest("The request target must begin with a slash.")
        target = target[match.end() :]
        if not target.startswith(b"/"):
            target = b"/" + target
    if b"#" in target or _CONTROL.search(target):
        raise MalformedRequest("The request target contains a character that must be encoded.")
    path, _, query = target.partition(b"?")
    if _BAD_PERCENT.search(path):
        raise MalformedRequest("The path contains an incomplete percent-encoding.")
    return path, query


def set_target(environ: dict[str, Any], target: bytes) -> None:
    """Set the path and the query string. Raises ``MalformedRequest``."""
    path, query = split_target(target)
    raw = unquote_to_bytes(path) if b"%" in path else path
    environ["PATH_INFO"] = raw.decode("latin-1")
    environ["QUERY_STRING"] = query.decode("latin-1")


def environ_of(
    base: dict[str, Any],
    method: str,
    target: bytes,
    version: str,
    fields: Sequence[Field],
    *,
    is_proxied: bool,
) -> dict[str, Any]:
    """Return the WSGI environment of a request without its body.

    ``base`` is copied. ``X-Forwarded-…`` fields are dropped unless the connection comes from a
    trusted proxy (``is_proxied``). Field names with an underscore are dropped, because WSGI doesn't
    distinguish them from those with a hyphen. Raises ``MalformedRequest``.
    """
    environ = base.copy()
    environ["REQUEST_METHOD"] = method
    set_target(environ, target)
    environ["SERVER_PROTOCOL"] = f"HTTP/{version}"
    for raw_name, raw_value in fields:
        name = raw_name.lower()
        if b"_" in name or name in _DROPPED or (name in _FORWARDED and not is_proxied):
            continue
        key = _environ_name(name)
        value = raw_value.decode("latin-1")
        if key not in environ:
            environ[key] = value
        elif name in _SINGLE or name.startswith(_SINGLE_PREFIXES):
            raise MalformedRequest(f"The header {name.decode('latin-1')} was sent twice.")
        else:
            environ[key] += ("; " if name == b"cookie" else ",") + value
    if version == "1.1" and "HTTP_HOST" not in environ:
        raise MalformedRequest("The header Host is missing.")
    return environ


_NAMES: dict[bytes, str] = {}


def _environ_name(name: bytes) -> str:
    key = _NAMES.get(name)
    if key is None:
        key = name.decode("latin-1").upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        if len(_NAMES) < 512 and len(name) <= 64:
            _NAMES[name] = key
    return key


def framing(environ: dict[str, Any]) -> int | None:
    """Return the announced length of the body: 0 without a body, None if it is chunked.

    Raises ``MalformedRequest`` for a transfer coding other than ``chunked`` and for both framings
    at once, ``InvalidJSON`` for a length that isn't a plain number.
    """
    coding = environ.get("HTTP_TRANSFER_ENCODING")
    length = environ.get("CONTENT_LENGTH")
    if coding is not None:
        if length is not None:
            raise MalformedRequest("Content-Length and Transfer-Encoding exclude each other.")
        if coding.strip().lower() != "chunked" or environ["SERVER_PROTOCOL"] != "HTTP/1.1":
            raise MalformedRequest("The only supported transfer coding is chunked.", status=501)
        return None
    if length is None:
        return 0
    if not _DIGITS.fullmatch(length.encode("latin-1")):
        raise InvalidJSON("Content-Length: expected a number")
    return int(length)
