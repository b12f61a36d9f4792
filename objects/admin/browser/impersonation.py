"""Browsing in a user's place, looking objects up while typing, and opening files."""

from __future__ import annotations

import re
from typing import Final

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Json
from backend.kernel.principal import READ_ONLY_MASTER
from backend.site.model_admin import page, render
from objects import service
from objects.admin.browser.labels import suggestions
from objects.admin.staff_access import PUBLIC, Place, act, class_page, permission, stop_acting
from objects.core.names import ROLE, USER
from objects.core.query.parser import parse_where
from objects.core.query.tree import FindOptions
from objects.files import service as files

_SUGGESTIONS: Final = 10


@page("browse-as/", name="data_act", permission="objects.view_user")
def choose(request: HttpRequest) -> HttpResponseBase:
    """Choose a user to browse as, or stop."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        target = reverse("admin:objects_objectclass_changelist")
    error = None
    user_id = request.POST.get("user", "").strip()
    if request.method == "POST":
        if "stop" in request.POST:
            stop_acting(request)
            return HttpResponseRedirect(target)
        writes = "writes" in request.POST
        if writes and not request.user.has_perm("objects.change_storedobject"):
            raise PermissionDenied
        try:
            act(request, PUBLIC if "public" in request.POST else user_id, writes=writes)
            return HttpResponseRedirect(target)
        except ServiceError as refused:
            error = refused
    response = render(
        request,
        "admin/data/act.html",
        "Browse as a user",
        error=error,
        next=target,
        user_id=user_id,
        may_write=request.user.has_perm("objects.change_storedobject"),
    )
    response.status_code = error.status if error else 200
    return response


@class_page("lookup/", "lookup")
def lookup(place: Place) -> HttpResponse:
    """Objects whose id or name begins with what was typed, as options of a list."""
    text = place.request.GET.get(place.request.GET.get("of", ""), "").strip()
    return TemplateResponse(
        place.request, "admin/data/lookup.html", {"suggestions": suggestions(place, text)}
    )


@page("acl-names/", name="data_acl_names", permission="objects.view_storedobject")
def acl_names(request: HttpRequest) -> HttpResponse:
    """Users and roles whose name begins with what was typed, by what an access list calls them."""
    text = request.GET.get("acl.name", "").strip()
    names: list[tuple[str, str]] = []
    for class_name, field in ((USER, "username"), (ROLE, "name")):
        if text and request.user.has_perm(permission("view", class_name)):
            where: Json = {field: {"$regex": "^" + re.escape(text)}}
            options = FindOptions(where=parse_where(where), limit=_SUGGESTIONS)
            for obj in service.find(READ_ONLY_MASTER, class_name, options).objects():
                name = str(obj.get(field))
                is_user = class_name == USER
                names.append((str(obj["objectId"]) if is_user else name, name))
    return TemplateResponse(request, "admin/data/lookup.html", {"suggestions": names})


@page("file/<path:name>", name="data_file", permission="objects.view_storedfile")
def open_file(request: HttpRequest, name: str) -> HttpResponseBase:
    """Lead to a file; to a private one by a link that expires."""
    record, link = files.describe(READ_ONLY_MASTER, name)
    return HttpResponseRedirect(link.url if link else files.address(record))
