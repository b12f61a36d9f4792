"""Errors outside the mount path: the service's own form, except on the admin's pages."""

from __future__ import annotations

import sys

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.views import defaults

from backend.http.exceptions import error_response
from backend.kernel.errors import CommandUnavailable, InternalError


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith("/admin/"):
        return defaults.page_not_found(request, exception)
    return error_response(CommandUnavailable("unknown route", status=404), request)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    text = "bad request"
    if isinstance(exception, DisallowedHost):
        text = "This host isn't served: PUBLIC_URL or ALLOWED_HOSTS has to name it."
    return error_response(CommandUnavailable(text, status=400), request)


def server_error(request: HttpRequest) -> HttpResponse:
    error = sys.exc_info()[1]
    fault = error if isinstance(error, Exception) else InternalError("no exception")
    return error_response(fault, request)
