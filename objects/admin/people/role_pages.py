"""Roles: their direct and inherited members, and adding and removing members."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from backend.kernel.errors import ObjectNotFound, ServiceError
from backend.kernel.json_types import Wire
from backend.site.model_admin import page, render
from backend.site.staff import principal_for, require
from objects import service
from objects.admin.browser.pagination import PageOfRows, Sorting
from objects.admin.people.pages import LONGEST, ON_A_PAGE, asked_page, find, get, note, time_of
from objects.admin.staff_access import error_page
from objects.core.names import OBJECT_ID, ROLE, USER, FieldName, parse_object_id
from objects.core.query.tree import (
    Compare,
    Equals,
    Everything,
    OrderKey,
    Query,
    RelatedTo,
    all_of,
)
from objects.core.values import pointer
from objects.users import roles
from objects.users.accounts.directory import user_named

VIEW: Final = "objects.view_role"
CHANGE: Final = "objects.change_role"
_LAST = "\U0010ffff"
_NAME: Final = FieldName("name")
_USERS: Final = FieldName("users")
_ROLES: Final = FieldName("roles")
_Kind = Literal["users", "roles"]


@page(
    "people/roles/",
    name="people_roles",
    permission=VIEW,
    title="Roles",
    section="People",
    icon="group",
    position=30,
)
@require_safe
def role_list(request: HttpRequest) -> HttpResponseBase:
    """Roles by name, or those whose name begins with what is typed."""
    text = request.GET.get("q", "").strip()[:LONGEST]
    where: Query = Everything()
    if text:
        where = all_of(Compare((_NAME,), "gte", text), Compare((_NAME,), "lt", text + _LAST))
    complaint, rows = "", PageOfRows([], None, None)
    try:
        rows = asked_page(request, ROLE, where, Sorting(_NAME))
    except ServiceError as error:
        complaint = error.message
    return render(
        request,
        "admin/people/roles.html",
        "Roles",
        roles=[_row(role) for role in rows.rows],
        newer=rows.before.encode() if rows.before else "",
        older=rows.after.encode() if rows.after else "",
        text=text,
        kept=f"&{urlencode({'q': text})}" if text else "",
        complaint=complaint,
    )


def _row(role: Wire) -> dict[str, str]:
    acl = role.get("ACL")
    writers = [
        who
        for who, rights in (acl.items() if isinstance(acl, dict) else ())
        if isinstance(rights, dict) and rights.get("write")
    ]
    return {
        "id": str(role["objectId"]),
        "name": str(role.get("name", "")),
        "created": time_of(role["createdAt"]),
        "writers": ", ".join(sorted(writers)) or "the master key",
    }


@page("people/roles/<str:role_id>/", name="people_role", permission=VIEW)
@require_safe
def role_page(request: HttpRequest, role_id: str) -> HttpResponseBase:
    """A role: its users, the roles inside of it as a tree, and those that it leads to."""
    try:
        return _show(request, role_id)
    except ServiceError as error:
        return error_page(request, error)


def _show(
    request: HttpRequest, role_id: str, complaint: str = "", status: int = 200
) -> TemplateResponse:
    role = get(ROLE, role_id)
    members = asked_page(request, USER, RelatedTo(ROLE, parse_object_id(role_id), _USERS))
    led_to = find(ROLE, Equals((_ROLES,), pointer(ROLE, role_id)), (OrderKey((_NAME,)),), ON_A_PAGE)
    response = render(
        request,
        "admin/people/role.html",
        f"Role {role.get('name', role_id)}",
        role=_row(role),
        members=[
            (str(member["objectId"]), member.get("username") or "") for member in members.rows
        ],
        newer=members.before.encode() if members.before else "",
        older=members.after.encode() if members.after else "",
        tree=roles.tree(role_id, str(role.get("name", role_id))),
        led_to=[_row(member) for member in led_to],
        may_change=request.user.has_perm(CHANGE),
        complaint=complaint,
    )
    response.status_code = status
    return response


@page("people/roles/<str:role_id>/members/", name="people_members", permission=CHANGE)
def members(request: HttpRequest, role_id: str) -> HttpResponseBase:
    """Add or remove a user or a role, by id or name (``who``)."""
    require(request, CHANGE)
    if request.method != "POST":
        return HttpResponseNotAllowed(("POST",))
    kind: _Kind = "roles" if request.POST.get("kind") == "roles" else "users"
    adds = "add" in request.POST
    try:
        get(ROLE, role_id)
        member = _member(kind, request.POST.get("who", "").strip()[:LONGEST])
        operator = "AddRelation" if adds else "RemoveRelation"
        body: Wire = {kind: {"__op": operator, "objects": [member]}}
        service.update(principal_for(request.user, CHANGE), ROLE, parse_object_id(role_id), body)
    except ServiceError as error:
        try:
            return _show(request, role_id, error.message, error.status)
        except ServiceError:
            return error_page(request, error)
    note(request, operator, role=role_id, member=member["objectId"])
    messages.success(request, "Taken in." if adds else "Taken out.")
    return HttpResponseRedirect(reverse("admin:people_role", args=(role_id,)))


def _member(kind: _Kind, text: str) -> Wire:
    """Return a pointer to the named user or role. Raises ``ObjectNotFound``."""
    if kind == "users":
        user_id = user_named(text)
        if user_id is None:
            raise ObjectNotFound("There is no user with this id, name or address.")
        return pointer("_User", user_id)
    for name in (OBJECT_ID, _NAME):
        roles = find(ROLE, Equals((name,), text), (), 1) if text else []
        if roles:
            return pointer("_Role", str(roles[0]["objectId"]))
    raise ObjectNotFound("There is no role with this id or name.")
