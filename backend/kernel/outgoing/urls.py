"""URLs that requests are sent to, and what responses say about the next request."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from time import time
from typing import Final
from urllib.parse import SplitResult, urlsplit

PORTS: Final = {"https": 443, "http": 80}
_MAX_DIGITS: Final = 9  # of the seconds in a Retry-After


def parts_of(url: str) -> SplitResult | None:
    """Return the parts of a URL that requests may be sent to, or None.

    Such a URL has a host, no name and password, no fragment, and only printable characters.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.username is not None or parts.fragment or not url.isprintable():
        return None
    return parts


def origin_of(url: str) -> str:
    """Return the scheme, host and port of a URL, which name a server, or "" if it has none."""
    parts = parts_of(url)
    if parts is None:
        return ""
    return f"{parts.scheme}://{parts.hostname}:{parts.port or PORTS.get(parts.scheme, 0)}"


def retry_after(text: str | None) -> float | None:
    """Return the seconds that a ``Retry-After`` asks for, as a number or as a time.

    None without the header, and for one that means neither.
    """
    text = (text or "").strip()
    if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
