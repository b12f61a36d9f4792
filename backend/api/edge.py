"""Where REST requests leave Django's middleware.

Everything below ``MOUNT_PATH`` is answered here, so that the admin's middleware (sessions, CSRF,
authentication, messages) costs REST requests nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from corsheaders.middleware import CorsMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import ResolverMatch, get_resolver
from django.urls.exceptions import Resolver404

from backend.api.views import UnknownRoute
from backend.conf import service_settings

URLCONF = "backend.api.urls"

_unknown = UnknownRoute.as_view()


class ApiEdge:
    """Middleware that answers REST requests itself and passes on all others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._to_browser = CorsMiddleware(_answer)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        mount = service_settings.MOUNT_PATH
        path = request.path_info
        if not path.startswith(mount) or path[len(mount) : len(mount) + 1] not in ("/", ""):
            return self._get_response(request)
        # Only browsers say where a page comes from, and only they look at the CORS headers.
        if "HTTP_ORIGIN" in request.META:
            return cast(HttpResponseBase, self._to_browser(request))
        return _answer(request)


def _answer(request: HttpRequest) -> HttpResponseBase:
    if request.method == "OPTIONS":
        return HttpResponse(status=200)
    match = resolve(request.path_info[len(service_settings.MOUNT_PATH) :])
    if match is None:
        return _unknown(request)
    response: HttpResponse = match.func(request, *match.args, **match.kwargs)
    return response


def resolve(path: str) -> ResolverMatch | None:
    """The route of a path below the mount path (``/classes/Foo``), or None.

    A slash at the end means nothing: the JavaScript SDK lists classes at ``/schemas/``.
    """
    if path.endswith("/") and path != "/":
        path = path[:-1]
    try:
        return get_resolver(URLCONF).resolve(path)
    except Resolver404:
        return None
