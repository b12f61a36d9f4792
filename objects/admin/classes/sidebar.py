"""The classes in the sidebar, favourites first, and the endpoint that marks a favourite."""

from __future__ import annotations

import re
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from backend.http.staff_api import ANY_STAFF, StaffAPIView
from backend.kernel.errors import InvalidClassName
from backend.site.model_admin import endpoint
from backend.site.sidebar import SidebarList, sidebar_list
from backend.site.staff import require
from objects.admin.class_sizes import recent_estimates
from objects.admin.classes.visible import visible_classes, without_built_in
from objects.admin.staff_access import permission
from objects.core.names import check_class_name
from objects.definitions.models import ObjectClass
from objects.staff import favourites

_MOST: Final = 20
"""Classes that are listed in addition to the favourites; the search has the others."""
_AT_HAND: Final = re.compile("/admin/data/([A-Za-z_][A-Za-z0-9_]{0,127})/")


@sidebar_list
def classes(request: HttpRequest) -> SidebarList | None:
    """The favourites, the first classes by name, and the class whose page it is."""
    visible = visible_classes(request.user)
    names = favourites.favourites(request.user)
    match = _AT_HAND.match(request.path)
    at_hand = match[1] if match else ""
    rows = list(without_built_in(visible).order_by("name")[: _MOST + 1])
    has_more = len(rows) > _MOST
    by_name = {row.name: row for row in rows[:_MOST]}
    missing = {*names, at_hand} - by_name.keys() - {""}
    if missing:
        by_name |= {row.name: row for row in visible.filter(name__in=missing)}
    if not by_name:
        return None
    counts = recent_estimates([row.pk for row in by_name.values()])
    favourite_names = frozenset(names)
    listed = sorted(by_name.values(), key=lambda row: (row.name not in favourite_names, row.name))
    return SidebarList(
        "Classes",
        "admin/data/sidebar.html",
        [
            _item(row, counts.get(row.pk), row.name in favourite_names, row.name == at_hand)
            for row in listed
        ],
        {"has_more": has_more},
    )


def _item(
    row: ObjectClass, count: int | None, is_favourite: bool, is_at_hand: bool
) -> dict[str, Any]:
    return {
        "title": row.name,
        "icon": "table_rows",
        "link": reverse("admin:data_objects", args=(row.name,)),
        "count": "" if count is None else short_count(count),
        "objects": "" if count is None else f"about {count:,} objects",
        "is_favourite": is_favourite,
        "favourite_link": reverse("admin:class_favourite", args=(row.name,)),
        "active": is_at_hand,
    }


def short_count(count: int) -> str:
    """Return a number in four characters at most: 950, 9k, 9.5k, 95k, 950k, 9.5M."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size - size // 2000:
            value = count / size
            digits = f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
            return digits.removesuffix(".0") + unit
    return str(count)


class FavouriteView(StaffAPIView):
    """A favourite class of the staff user: PUT adds it, DELETE removes it."""

    permissions = {"PUT": ANY_STAFF, "DELETE": ANY_STAFF}

    def put(self, request: Request, class_name: str) -> Response:
        checked = check_class_name(class_name)
        require(request._request, permission("view", checked))
        if not visible_classes(request.user).filter(name=checked).exists():
            raise InvalidClassName("There is no such class.", status=404)
        favourites.add(request.user, checked)
        return Response({"favourite": True})

    def delete(self, request: Request, class_name: str) -> Response:
        favourites.remove(request.user, check_class_name(class_name))
        return Response({"favourite": False})


endpoint("favourite-classes/<str:class_name>/", FavouriteView.as_view(), name="class_favourite")
