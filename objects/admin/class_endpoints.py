"""The base of JSON endpoints about the objects of a class, below ``/admin/data/CLASS/``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from backend.http.staff_api import StaffAPIView
from backend.site.model_admin import endpoint
from objects.admin.staff_access import Place, StaffAction, permission, place_of
from objects.core.names import is_class_name


class _MayAct(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        user, action = request.user, view.permissions.get(request.method)
        if not (user.is_active and user.is_staff) or action is None:
            return False
        name = view.kwargs["class_name"]
        return bool(user.has_perm(permission(action, name if is_class_name(name) else None)))


class ClassAPIView(StaffAPIView):
    """An endpoint of one class. ``permissions`` has for each method what staff have to be allowed
    to do with objects of the class; ``place`` is the class with their rights, as for pages."""

    permissions: ClassVar[Mapping[str, StaffAction]] = {}
    permission_classes = (_MayAct,)
    place: Place

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.place = place_of(request._request, kwargs["class_name"], "objects")
        self.place.require(self.permissions[str(request.method)])


def class_endpoint(route: str, view: type[ClassAPIView], *, name: str) -> None:
    """Put an endpoint at ``/admin/data/CLASS/ROUTE`` under the url name ``admin:data_NAME``."""
    endpoint(f"data/<str:class_name>/{route}", view.as_view(), name=f"data_{name}")
