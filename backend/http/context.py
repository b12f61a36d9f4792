"""The outermost middleware: request ids and log lines, for every request.

It gives the request an id (the client's ``X-Request-Id`` where that is well formed), carries it
into every line logged meanwhile and into the answer's header, and logs one line a request: method,
path, status, duration, who sent it, and what it was about. The query string and headers are never
logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from time import perf_counter
from typing import Any

import structlog.contextvars
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from structlog.contextvars import bind_contextvars, clear_contextvars

from backend.http.renderers import JsonResponse
from backend.kernel import request_counts
from backend.kernel.networks import is_in_networks, parse_address
from backend.kernel.randomness import random_bytes
from backend.kernel.request_context import Current, as_current
from backend.kernel.texts.encoding import shortened
from backend.logs.setup import request_line
from backend.settings.conf import service_settings

HEADER = "X-Request-Id"
_LONGEST_ADDRESS = 64  # characters: IPv6 with the name of an interface
_MOST_PROXIES = 8  # trusted proxies in a row
_OUTSIDE = frozenset({"admin", "static", "health", "ready", "metrics"})
_ROUTINE = frozenset(f"/{word}" for word in _OUTSIDE)
_LONGEST_ERROR = 500  # characters in the log
_LOGGED_NAMES = ("class_name", "object_id", "network_id", "trigger_name")
_KINDS_OF_NAMES = {
    "/functions/{name}": "function",
    "/hooks/functions/{name}": "function",
    "/jobs/{name}": "job",
    "/cloud_code/jobs/{name}": "job",
}
# What structlog's context has ever had in this process. ``clear_contextvars`` goes through all
# context variables, and there are dozens: 4 µs a request.
_ever_bound = structlog.contextvars._CONTEXT_VARS
_BOUND_HERE = frozenset({f"{structlog.contextvars.STRUCTLOG_KEY_PREFIX}request_id"})
_WELL_FORMED = re.compile(r"[A-Za-z0-9_.-]{8,64}").fullmatch


def request_id_of(sent_id: str) -> str:
    """Return the id that a client has sent where it is well formed, or else 128 random bits."""
    return sent_id if _WELL_FORMED(sent_id) else random_bytes(16).hex()


class RequestContext:
    """The middleware. ``request.id`` is there for everything inside it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        begin = perf_counter()
        request_id = request_id_of(request.META.get("HTTP_X_REQUEST_ID", ""))
        request.id = request_id  # type: ignore[attr-defined]
        if _ever_bound.keys() != _BOUND_HERE:
            clear_contextvars()
        bind_contextvars(request_id=request_id)
        with as_current(Current(request_id, meta=request.META)) as now:
            try:
                response = self.get_response(request)
            finally:
                if now.results is not None:
                    now.results.release()
        if isinstance(response, JsonResponse):
            response.headers.set_unchecked(HEADER, request_id)
        else:
            response.headers[HEADER] = request_id
        duration = perf_counter() - begin
        rest_route = getattr(request, "route", None)
        route = rest_route or _outside(request.path_info)
        request_line(
            request_id,
            now.method or request.method or "",
            request.path_info,
            response.status_code,
            round(duration * 1000, 2),
            is_routine=route in _ROUTINE,
            about=_about(request, response, now, rest_route),
        )
        request_counts.count(
            request.method or "",
            route,
            response.status_code,
            duration,
            is_routine=route in _ROUTINE,
            user=now.user_id,
        )
        return response


def _about(
    request: HttpRequest, response: HttpResponseBase, now: Current, rest_route: str | None
) -> dict[str, str | int]:
    """Return what explains the outcome of a request in its log line."""
    about: dict[str, str | int] = {}
    if rest_route is not None:
        about["route"] = rest_route
        logged = _logged_names(rest_route)
        for name, value in now.names.items():
            if name in logged:
                about[logged[name]] = value
        if response.status_code == 201 and "class_name" in about and "Location" in response.headers:
            about["object_id"] = response.headers["Location"].rpartition("/")[2]
    else:
        _add_page(about, request)
    if isinstance(response, HttpResponse):
        about["bytes"] = len(response.content)
    about["address"] = now.address or client_address(request.META)
    if now.key:
        about["key"] = now.key
    if now.user_id is not None:
        about["user"] = now.user_id
        if now.session_id is not None:
            about["session"] = now.session_id
    if now.ran:
        about["ran"] = ", ".join(now.ran)
    if now.error is not None:
        if now.item:
            about["item"] = now.item
        about["code"] = now.error.code
        about["error"] = shortened(now.error.message, _LONGEST_ERROR)
    return about


@cache
def _logged_names(route: str) -> Mapping[str, str]:
    """Return what the names in the path of a route are called in the log, those that it has."""
    logged = {name: name for name in _LOGGED_NAMES}
    return logged if route not in _KINDS_OF_NAMES else {**logged, "name": _KINDS_OF_NAMES[route]}


def _add_page(about: dict[str, str | int], request: HttpRequest) -> None:
    """Add the name of a page, and of the staff user who has requested it."""
    match = request.resolver_match
    if match is not None and match.view_name:
        about["route"] = match.view_name
    # Where Django's middleware has it. ``request.user`` would read it for the log line alone.
    user = getattr(request, "_cached_user", None)
    if user is not None and user.is_staff:
        about["key"], about["staff"] = "staff", user.get_username()


def _outside(path: str) -> str:
    """The route of a path that isn't REST's, as far as metrics tell them apart."""
    word = path.split("/", 2)[1] if path.startswith("/") else ""
    return f"/{word}" if word in _OUTSIDE else "other"


def client_address(meta: Mapping[str, Any]) -> str:
    """Return the address of the client, seen through the deployment's own proxies.

    ``X-Forwarded-For`` counts only where the connection comes from a proxy: over its socket, or
    from one of ``TRUSTED_PROXIES``. Each proxy appends the address of its peer, so entries are read
    from the end, for as long as they are trusted proxies themselves. An entry that isn't an address
    ends this. Entries longer than any address aren't parsed: addresses are remembered.
    """
    address = str(meta.get("REMOTE_ADDR") or "")
    forwarded = str(meta.get("HTTP_X_FORWARDED_FOR") or "")
    for _ in range(_MOST_PROXIES):
        if not forwarded or not is_proxy(address):
            break
        forwarded, _comma, entry = forwarded.rpartition(",")
        parsed = parse_address(entry) if len(entry) <= _LONGEST_ADDRESS else None
        if parsed is None:
            break
        address = parsed
    return address


def is_proxy(peer: str) -> bool:
    """Whether a connection comes from a trusted proxy: from one of ``TRUSTED_PROXIES``, or over a
    Unix socket (no address), which only the service's own account can open."""
    return peer == "" or is_in_networks(peer, tuple(service_settings.TRUSTED_PROXIES))
