"""What all requests have in common that the service itself sends to others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import cache
from time import time
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

PATIENCE: Final = 2.0  # seconds to wait for other threads
_MAX_DIGITS: Final = 9  # of the seconds in a Retry-After


class Unreachable(Exception):
    """No usable answer. The text says why, without the address: that may hold secrets."""


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


@contextmanager
def turn() -> Iterator[None]:
    """One of the requests that the process may wait for at the same moment.

    At most half of the threads send requests, and at most a quarter wait for their turn: a receiver
    that hangs must not hold every thread of the process. Raises ``Unreachable`` if the others take
    too long, or if too many wait already.
    """
    turns = _turns()
    if not turns.acquire(blocking=False) and not _waited_for(turns):
        raise Unreachable("too many requests are waiting for answers")
    try:
        yield
    finally:
        turns.release()


def _waited_for(turns: threading.BoundedSemaphore) -> bool:
    places = _waiting_places()
    if not places.acquire(blocking=False):
        return False
    try:
        return turns.acquire(timeout=PATIENCE)
    finally:
        places.release()


@cache
def _turns() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 2))


@cache
def _waiting_places() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 4))
