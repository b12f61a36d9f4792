"""The base of the JSON endpoints that pages of the admin call: plain DRF, with serializers.

Unlike REST (``backend.http.views``) they are for staff and not hot, so they are as Django's
developers know them. Errors have REST's form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBase
from rest_framework import exceptions
from rest_framework.authentication import SessionAuthentication
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from backend.http.bodies.parsers import decode_object, read_bytes
from backend.http.exceptions import error_response
from backend.http.views import MethodNotAllowed
from backend.kernel.errors import (
    CommandUnavailable,
    ObjectNotFound,
    OperationForbidden,
    ValidationFailed,
)

ANY_STAFF: Final = ""
"""In place of a permission: all staff, for views that check what they show themselves."""
_LARGEST_BODY = 5 * 1024 * 1024  # bytes


class _JsonParser(BaseParser):
    """A JSON object, read as strictly as those of REST."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Any = None
    ) -> dict[str, Any]:
        raw = read_bytes(parser_context["request"]._request, _LARGEST_BODY)
        return decode_object(raw) if raw else {}


class _HasPermission(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if not (user.is_active and user.is_staff):
            return False
        permission = view.permissions.get(request.method)
        if permission is None:
            return False
        return permission == ANY_STAFF or user.has_perm(permission)


class StaffAPIView(APIView):
    """A JSON endpoint below the admin, which ``backend.site.model_admin.endpoint`` gives a route.

    ``permissions`` has for each method the permission that staff need; without one it is refused.
    Staff with a session are let in who have passed their second factor if they have to; methods
    that write need Django's CSRF token (``X-CSRFToken``). A ``ServiceError`` and DRF's exceptions
    are answered with ``{"code": int, "error": str}``; the error of a serializer names its field.
    """

    permissions: ClassVar[Mapping[str, str]] = {}

    authentication_classes = (SessionAuthentication,)
    permission_classes = (_HasPermission,)
    parser_classes: Any = (_JsonParser,)
    renderer_classes = (JSONRenderer,)

    def handle_exception(self, exc: Exception) -> HttpResponseBase:
        return error_response(self._service_error(exc), self.request._request)

    def _service_error(self, error: Exception) -> Exception:
        match error:
            case exceptions.ValidationError():
                return ValidationFailed(_first(error.detail))
            case exceptions.MethodNotAllowed():
                return MethodNotAllowed(str(self.request.method), tuple(self.permissions))
            case exceptions.NotFound() | Http404():
                return ObjectNotFound("There is nothing here by this name.")
            case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
                return OperationForbidden("Log in to the admin first.", status=403)
            case exceptions.PermissionDenied():
                return OperationForbidden(str(error.detail), status=403)
            case PermissionDenied():
                return OperationForbidden("You don't have the permission for this.", status=403)
            case exceptions.APIException():
                return CommandUnavailable(str(error.detail), status=error.status_code)
        return error


def _first(detail: Any, place: str = "") -> str:
    """The first text of a serializer's errors, after the path of its field."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        is_whole = name in ("non_field_errors", "detail")
        return _first(inner, place if is_whole else f"{place}.{name}" if place else str(name))
    if isinstance(detail, list):
        # A list of many has an error, or nothing, for each of its elements.
        return _first(next((inner for inner in detail if inner), "Invalid."), place)
    return f"{place}: {detail}" if place else str(detail)
