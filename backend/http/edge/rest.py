"""Where REST requests leave Django's way.

Everything below ``MOUNT_PATH`` is answered here: behind the WSGI server by ``RestFirst`` without
Django's handler, elsewhere (Django's test client) by the middleware ``ApiEdge``. Both call the
same views; what they leave out are sessions, CSRF, authentication, messages, signals and the
thread's URL settings, which only the admin needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from corsheaders.middleware import CorsMiddleware
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from backend.http.bodies.limits import is_rest
from backend.http.context import RequestContext, client_address
from backend.http.edge import file_host
from backend.http.edge.paths import check_path
from backend.http.edge.routing import resolve
from backend.http.edge.wsgi_request import Utf8Request
from backend.http.exceptions import error_response
from backend.http.renderers import JsonHeaders
from backend.http.views import UnknownRoute
from backend.kernel.errors import ServiceError
from backend.kernel.request_context import current
from backend.settings.conf import service_settings

_unknown = UnknownRoute.as_view()


class ApiEdge:
    """Middleware that answers REST requests itself and passes on all others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._to_browser = CorsMiddleware(_answer)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_rest(request.path_info):
            if file_host.is_for_files(request.META):
                return error_response(file_host.nothing_else(), request)
            # REST finds it out where it counts requests.
            current().address = client_address(request.META)
            return _refused(request) or self._get_response(request)
        _merge_slashes(request)
        # Only browsers say where a page comes from, and only they look at the CORS headers.
        if "HTTP_ORIGIN" in request.META:
            return cast(HttpResponseBase, self._to_browser(request))
        return _answer(request)


class RestFirst:
    """The WSGI application: answers REST requests and passes others to Django.

    An answer that is whole goes to the server as a list, which is sent at once; it streams
    everything else through another thread.
    """

    def __init__(self, django: Callable[..., Iterable[bytes]]) -> None:
        self._django = django
        self._rest = cast(
            Callable[[HttpRequest], HttpResponseBase],
            convert_exception_to_response(RequestContext(ApiEdge(_answer))),
        )

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        if not is_rest(environ.get("PATH_INFO", "")):
            return self._django(environ, start_response)
        request = Utf8Request(environ)
        response = self._rest(request)
        headers = response.headers
        start_response(
            f"{response.status_code} {response.reason_phrase}",
            headers.pairs() if isinstance(headers, JsonHeaders) else list(headers.items()),
        )
        request.close()
        return [response.content] if isinstance(response, HttpResponse) else response


def _merge_slashes(request: HttpRequest) -> None:
    """Replace two slashes after the mount path by one: ``Parse.Hooks`` requests ``//hooks/…``.

    Here, before anything reads the path, so that rate limits see the path of the route.
    """
    mount = service_settings.MOUNT_PATH
    if request.path_info.startswith("//", len(mount)):
        request.path_info = mount + request.path_info[len(mount) + 1 :]


def _answer(request: HttpRequest) -> HttpResponse:
    refused = _refused(request)
    if refused is not None:
        return refused
    if request.method == "OPTIONS":
        return HttpResponse(status=200)
    route = resolve(request.path_info[len(service_settings.MOUNT_PATH) :])
    if route is None:
        return _unknown(request)
    request.route = route.form  # type: ignore[attr-defined]
    current().names = route.names
    if file_host.is_for_files(request.META) and not _serves_files(route.view):
        return error_response(file_host.nothing_else(), request)
    return route.view(request, **route.names)


def _refused(request: HttpRequest) -> HttpResponse | None:
    """The refusal of a path that layers could read differently; None for every other."""
    try:
        check_path(request.path_info, service_settings.MOUNT_PATH)
    except ServiceError as error:
        return error_response(error, request)
    return None


def _serves_files(view: Callable[..., Any]) -> bool:
    return bool(getattr(getattr(view, "view_class", None), "serves_files", False))
