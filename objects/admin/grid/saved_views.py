"""Saved views of a class: a filter, an order and columns under a name, one's own or shared.

Staff who may change objects of the class may share views with all staff. A view is deleted by its
owner; a shared one also by superusers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from backend.kernel.errors import InvalidQuery, ObjectNotFound
from objects.admin.class_endpoints import ClassAPIView, class_endpoint
from objects.admin.grid import filters, layouts
from objects.admin.grid.questions import question_of
from objects.admin.staff_access import Place
from objects.staff.models import StaffGrid

_MOST: Final = 50  # of one staff user and class
_MOST_LISTED: Final = 200


class ViewSerializer(layouts.LayoutSerializer):
    """A view as the page sends it."""

    name = serializers.CharField(max_length=80)
    isShared = serializers.BooleanField(default=False)
    where = serializers.CharField(max_length=20_000, allow_blank=True, default="")
    order = serializers.CharField(max_length=130, allow_blank=True, default="")


@dataclass(frozen=True, slots=True)
class View:
    """A saved view as a link; ``address`` is the query of the grid that shows it."""

    pk: int
    name: str
    address: str
    is_shared: bool
    owner: str
    may_delete: bool


def listed(place: Place) -> list[View]:
    """Return the staff user's own views of the class and the shared ones, by name."""
    user = place.request.user
    rows = _visible(place).select_related("user").order_by("name", "id")[:_MOST_LISTED]
    return [
        View(
            row.pk,
            row.name,
            _address(row),
            row.is_shared,
            "" if row.user_id == user.pk else row.user.get_username(),
            row.user_id == user.pk or user.is_superuser,
        )
        for row in rows
    ]


def layout_of(place: Place, view: int) -> layouts.Layout | None:
    """Return the columns of a view; None if the staff user has no such view."""
    row = _visible(place).filter(pk=view).first()
    return None if row is None else layouts.read(place.table.schema, row.columns, row.size)


def _visible(place: Place) -> QuerySet[StaffGrid]:
    own_or_shared = Q(user=place.request.user.pk) | Q(is_shared=True)
    return StaffGrid.objects.filter(own_or_shared, class_name=place.class_name).exclude(name="")


def _address(row: StaffGrid) -> str:
    parameters = {"where": row.where, "order": row.order, "view": str(row.pk)}
    return urlencode({name: value for name, value in parameters.items() if value})


class ViewsView(ClassAPIView):
    """POST saves a view, in place of the staff user's own of that name."""

    permissions = {"POST": "view"}

    def post(self, request: Request, class_name: str) -> Response:
        place = self.place
        entered: Any = ViewSerializer(data=request.data)
        entered.is_valid(raise_exception=True)
        view = entered.validated_data
        if view["isShared"] and not place.may("change"):
            raise PermissionDenied
        question = question_of(request._request, view["where"], view["order"])
        columns = [[column["name"], column["width"]] for column in view["columns"]]
        if layouts.read(place.table.schema, columns, view["size"]) is None:
            raise InvalidQuery("columns: choose at least one field of the class.")
        user_id = place.request.user.pk
        others = StaffGrid.objects.filter(user=user_id, class_name=place.class_name)
        if others.exclude(name__in=("", view["name"])).count() >= _MOST:
            raise InvalidQuery(f"You have {_MOST} views of this class. Delete one first.")
        row, _ = StaffGrid.objects.update_or_create(
            user_id=user_id,
            class_name=place.class_name,
            name=view["name"],
            defaults={
                "is_shared": view["isShared"],
                "where": filters.as_text(question.where),
                "order": question.order,
                "columns": columns,
                "size": view["size"],
            },
        )
        return Response({"address": _address(row)})


class ViewView(ClassAPIView):
    """DELETE removes a view."""

    permissions = {"DELETE": "view"}

    def delete(self, request: Request, class_name: str, view: int) -> Response:
        user = self.place.request.user
        rows = _visible(self.place).filter(pk=view)
        if not user.is_superuser:
            rows = rows.filter(user=user.pk)
        if not rows.delete()[0]:
            raise ObjectNotFound("You have no such view.")
        return Response({})


class_endpoint("views/", ViewsView, name="views")
class_endpoint("views/<int:view>/", ViewView, name="view")
