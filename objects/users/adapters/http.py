"""Asking a provider over HTTP: within a time, up to a size, never elsewhere.

Addresses are a deployment's settings, or come from a document that such an address gave. They are
``https``, or ``http`` to this machine where ``DEBUG`` is on and in tests. A redirect is an answer
like any other: no request goes to the place that it names.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from django.conf import settings

from backend.kernel.outgoing import PATIENCE, Unreachable, parts_of, turn
from backend.settings.environment import LOOPBACK_HOSTS

__all__ = ["PATIENCE", "Answer", "Unreachable", "allowed", "fetch"]

WAIT = 5.0  # seconds for a connection and for each piece of the answer
WHOLE_WAIT = 10.0  # seconds for the answer as a whole
LARGEST_ANSWER = 256 * 1024  # bytes; the longest key lists known have 10 KB
_PIECE = 16 * 1024


@dataclass(frozen=True)
class Answer:
    """A response of any status."""

    status: int
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body, which has to be a JSON object."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise Unreachable("the answer is not a JSON object")
        return value


def allowed(url: str) -> bool:
    """Whether the service asks at such an address at all."""
    parts = parts_of(url)
    if parts is None:
        return False
    if parts.scheme == "http":
        return parts.hostname in LOOPBACK_HOSTS and (settings.DEBUG or settings.PROCESS == "test")
    return parts.scheme == "https"


def fetch(
    url: str,
    *,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """GET, or POST the body as JSON. ``Unreachable`` if there is no answer that can be used."""
    if not allowed(url):
        raise Unreachable("the address is not one to ask at")
    request = Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Accept": "application/json", "User-Agent": "svc-backend"} | dict(headers or {}),
    )
    if body is not None:
        request.add_header("Content-Type", "application/json")
    with turn():
        try:
            return _answer(request)
        # Also what http.client makes of an answer that isn't HTTP, and what a bad address raises.
        except (OSError, ValueError, HTTPException) as error:
            raise Unreachable(type(error).__name__) from None


def _answer(request: Request) -> Answer:
    until = time.monotonic() + WHOLE_WAIT
    is_local = urlsplit(request.full_url).hostname in LOOPBACK_HOSTS
    response = _opener(is_local).open(request, timeout=WAIT)
    if response is None:
        raise Unreachable("there is no way to ask at this address")
    with response:
        received = bytearray()
        while piece := response.read1(_PIECE):
            received += piece
            if len(received) > LARGEST_ANSWER:
                raise Unreachable("the answer is too large")
            if time.monotonic() > until:
                raise Unreachable("the answer takes too long")
        return Answer(response.status, bytes(received))


@cache
def _opener(on_this_machine: bool) -> OpenerDirector:
    # Only these: no files, no FTP, and nothing that follows redirects.
    opener = OpenerDirector()
    if not on_this_machine:
        opener.add_handler(ProxyHandler())
    opener.add_handler(HTTPHandler())
    opener.add_handler(HTTPSHandler(context=ssl.create_default_context()))
    return opener
