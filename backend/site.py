"""What the pages of the site (the admin) need of Django and REST requests don't.

Django looks at its database connections at the beginning and at the end of every request, by
signals. The object store looks at its connection itself before each statement
(``objects.database``), so for REST that is work for nothing; the site gets it from the middleware
here.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache import close_caches
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connections, reset_queries
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse


def disconnect_connection_signals() -> None:
    """Take Django's receivers off the signals of every request."""
    request_started.disconnect(reset_queries)
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    request_finished.disconnect(close_caches)


class ConnectionUpkeep:
    """Middleware behind the REST edge: what the signals did, for the requests that get here."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        reset_queries()
        _close_unusable_connections()
        try:
            return self._get_response(request)
        finally:
            _close_unusable_connections()
            close_caches()


class PagePolicy:
    """Middleware: what browsers may load and run for the pages of the site.

    Scripts come from us alone, as files: a value that found its way into a page as markup would
    run nothing. Alpine, which comes with the admin's look, needs ``unsafe-eval``.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        address = urlsplit(settings.PUBLIC_URL)
        self._policy = "; ".join(
            (
                "default-src 'self'",
                "script-src 'self' 'unsafe-eval'",
                "style-src 'self' 'unsafe-inline'",
                # Files have the public address, whatever the admin is reached by.
                f"img-src 'self' data: {address.scheme}://{address.netloc}",
                "object-src 'none'",
                "base-uri 'none'",
                "form-action 'self'",
                "frame-ancestors 'none'",
            )
        )

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        response.headers.setdefault("Content-Security-Policy", self._policy)
        return response


class StaffLogIn:
    """Middleware: guessing the passwords of staff is limited as ``/login`` is, by address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method == "POST" and request.path == reverse("admin:login"):
            refusal = self._refusal(request)
            if refusal is not None:
                return refusal
        return self._get_response(request)

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        # Only here: this module is read before there are applications.
        from backend.api.context import client_address
        from backend.limits import Request, decide, rules_for

        rules = rules_for("/login", "POST")
        if not rules:
            return None
        address = client_address(request.META)
        (verdict,) = decide([Request(rules, "/login", address, None)])
        if verdict.refusal is None:
            return None
        headers = getattr(verdict.refusal, "headers", {})
        return HttpResponse(
            verdict.refusal.message,
            content_type="text/plain; charset=utf-8",
            status=verdict.refusal.status,
            headers=headers,
        )


def _close_unusable_connections() -> None:
    for connection in connections.all(initialized_only=True):
        # Inside a transaction somebody else is responsible: a test, for example.
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
