"""Errors out: any exception as ``{"code": int, "error": str}``."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse

from backend.http.renderers import JsonResponse, json_response
from backend.kernel.connections.outages import is_outage
from backend.kernel.errors import InternalError, ServiceError, ServiceUnavailable
from backend.kernel.interruptions import is_from_outside
from backend.kernel.request_context import current
from backend.logs.failures import presentable_error
from backend.logs.setup import get_logger

_LAST_RESORT: Final = b'{"code":1,"error":"Internal server error."}'

log = get_logger("api")


def as_service_error(error: BaseException, request_id: str) -> ServiceError:
    """The error that a client may see.

    A ``ServiceError`` is shown as it is. Anything else is a fault of ours: it is logged with its
    trace, and the client gets a neutral text with the request id under which the log has it.
    """
    if isinstance(error, ServiceError):
        shown = presentable_error(error)
        if shown.status != InternalError.status:
            return shown
    log.error("request failed", exc_info=error)
    if is_outage(error):
        return ServiceUnavailable("The database can't do that at the moment.")
    return InternalError(f"Internal server error. Request id: {request_id}")


def error_response(error: BaseException, request: HttpRequest) -> HttpResponse:
    """Return the HTTP response for any exception. Never raises."""
    try:
        return _error_response(error, request)
    except BaseException as failure:  # of attributes of the error, which may be any object
        if is_from_outside(failure):
            raise
        log.error("an error can't be shown", exc_info=failure)
        return JsonResponse(_LAST_RESORT, InternalError.status)


def _error_response(error: BaseException, request: HttpRequest) -> HttpResponse:
    shown = as_service_error(error, getattr(request, "id", "-"))
    current().error = shown
    response = json_response(shown.body(), shown.status)
    # Headers of the error: Allow, Retry-After.
    for name, value in getattr(shown, "headers", {}).items():
        response.headers[name] = value
    return response
