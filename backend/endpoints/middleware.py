"""What the pages of the site (the admin) need of Django and REST requests don't.

Django looks at its database connections at the beginning and at the end of every request, by
signals. The object store looks at its connection itself before each statement
(``objects.database.statements``), so for REST that is work for nothing; the site gets it from the
middleware here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache import close_caches
from django.core.exceptions import DisallowedHost
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connections, reset_queries
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from objects.file_urls import file_origin


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


class Probes:
    """Middleware: answers ``/health``, ``/ready`` and ``/metrics`` under every host.

    Load balancers, Kubernetes and Prometheus send the address of a machine or pod as ``Host``,
    which ``ALLOWED_HOSTS`` doesn't name.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        # Only here: this module is read before there are applications.
        from backend.endpoints.health import health, ready
        from backend.endpoints.metrics import metrics

        self._get_response = get_response
        self._views = {"/health": health, "/ready": ready, "/metrics": metrics}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        view = self._views.get(request.path_info)
        if view is None:
            return self._get_response(request)
        response = view(request)
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


class PagePolicy:
    """Middleware: what browsers may load and run for the pages of the site.

    Scripts and styles are static files, and come from their path alone: neither a value that found
    its way into a page as markup nor an uploaded file runs. Alpine, which comes with the admin's
    look, needs ``unsafe-eval``.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        if "Content-Security-Policy" not in response.headers:
            response.headers["Content-Security-Policy"] = self._policy(request)
        return response

    def _policy(self, request: HttpRequest) -> str:
        static = static_sources(request)
        # The words of Django's own scripts are a script that a view writes.
        words = sources(request, reverse("admin:jsi18n"))
        return "; ".join(
            (
                "default-src 'self'",
                f"script-src {static} {words} 'unsafe-eval'",
                f"style-src {static} 'unsafe-inline'",
                f"font-src {static}",
                # Files have the public address, also where the admin has another one.
                f"img-src 'self' data: {_origin(file_origin())}",
                *(f"{kind}-src 'none'" for kind in ("object", "frame", "worker", "manifest")),
                "base-uri 'none'",
                "form-action 'self'",
                "frame-ancestors 'none'",
            )
        )


def static_sources(request: HttpRequest) -> str:
    """The static files as a source list of a ``Content-Security-Policy``."""
    return sources(request, settings.STATIC_URL)


def sources(request: HttpRequest, path: str) -> str:
    """What is below a path of the service, as a source list of a ``Content-Security-Policy``.

    A path needs a host: the one that the request names, if it is one of ours, and that of
    ``PUBLIC_URL``, for a proxy in between that changes it.
    """
    listed = {f"{_origin(settings.PUBLIC_URL)}{path}": None}
    with suppress(DisallowedHost):
        # Without a scheme it is the page's, which a proxy in between may not name.
        listed[f"{request.get_host()}{path}"] = None
    return " ".join(listed)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _close_unusable_connections() -> None:
    for connection in connections.all(initialized_only=True):
        # Inside a transaction its owner is responsible: a test, for example.
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
