"""Users: search, and the page of a user."""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Json, Wire
from backend.site.model_admin import page, render
from objects.admin.browser.pagination import PageOfRows
from objects.admin.people.pages import LONGEST, ON_A_PAGE, asked_page, by_ids, find, get, time_of
from objects.admin.people.sections import sections
from objects.admin.staff_access import error_page
from objects.core.names import CREATED_AT, SESSION, USER, FieldName
from objects.core.query.tree import Equals, Everything, OrderKey
from objects.core.values import pointer
from objects.files import quotas
from objects.users import roles
from objects.users.accounts import directory
from objects.users.passkeys import keys

VIEW: Final = "objects.view_user"
_SESSIONS = 50
# What the page shows in places of its own.
_KNOWN = frozenset(
    {"objectId", "username", "email", "emailVerified", "createdAt", "updatedAt", "authData", "ACL"}
)
PERMISSIONS: Final = {
    "revoke": "objects.delete_session",
    "change": "objects.change_user",
    "file_quota": "objects.change_filequota",
    "password": "objects.change_password",
    "second_factor": "objects.delete_secondfactor",
    "identity": "objects.delete_identity",
    "delete": "objects.delete_user",
}
"""The staff permission that each kind of change takes. Editors have those of users and sessions;
passwords, second factors and identities, by which one gets into an account, and storage quotas
are for Administrators."""
MEGABYTE: Final = 1024 * 1024


@page(
    "people/users/",
    name="people_users",
    permission=VIEW,
    title="Users",
    section="People",
    icon="person",
    position=10,
)
@require_safe
def users(request: HttpRequest) -> HttpResponseBase:
    """The newest users, or those whose id, name or address begins with what is typed."""
    text = request.GET.get("q", "").strip()[:LONGEST]
    complaint, more = "", False
    rows = PageOfRows([], None, None)
    try:
        if text:
            matches = directory.search(text, ON_A_PAGE + 1)
            more = len(matches) > ON_A_PAGE
            rows = PageOfRows(by_ids(USER, matches[:ON_A_PAGE]), None, None)
        else:
            rows = asked_page(request, USER, Everything())
    except ServiceError as error:
        complaint = error.message
    return render(
        request,
        "admin/people/users.html",
        "Users",
        users=[_row(user) for user in rows.rows],
        newer=rows.before.encode() if rows.before else "",
        older=rows.after.encode() if rows.after else "",
        text=text,
        more=more,
        complaint=complaint,
    )


def _row(user: Wire) -> dict[str, Any]:
    return {
        "id": user["objectId"],
        "name": user.get("username") or "",
        "email": user.get("email") or "",
        "verified": user.get("emailVerified"),
        "created": time_of(user["createdAt"]),
    }


@page("people/users/<str:user_id>/", name="people_user", permission=VIEW)
@require_safe
def user_page(request: HttpRequest, user_id: str) -> HttpResponseBase:
    """Show a user, with the actions that staff may perform."""
    try:
        return show_user(request, user_id)
    except ServiceError as error:
        return error_page(request, error)


def show_user(
    request: HttpRequest, user_id: str, complaint: str = "", status: int = 200
) -> TemplateResponse:
    """Render the page of a user, with any error. Raises ``ServiceError`` for an unknown user."""
    user = get(USER, user_id)
    sessions = _sessions(user_id)
    ways = roles.paths(user_id)
    response = render(
        request,
        "admin/people/user.html",
        f"User {user.get('username') or user_id}",
        user_row=_row(user) | {"updated": time_of(user["updatedAt"])},
        acl=_json(user["ACL"]) if "ACL" in user else "",
        fields=sorted((name, _json(value)) for name, value in user.items() if name not in _KNOWN),
        standing=directory.standing(user_id),
        storage=_storage_row(quotas.usage_of(user_id)),
        passkeys=[_passkey_row(passkey) for passkey in keys.shown(user_id)],
        sessions=[session_row(passkey) for passkey in sessions[:_SESSIONS]],
        more_sessions=len(sessions) > _SESSIONS,
        direct_roles=[name for name, way in ways.items() if len(way) == 1],
        inherited_roles=[(name, way) for name, way in ways.items() if len(way) > 1],
        sections=sections(request, user_id),
        may={name: request.user.has_perm(needed) for name, needed in PERMISSIONS.items()},
        complaint=complaint,
    )
    response.status_code = status
    return response


def _storage_row(usage: quotas.Usage) -> dict[str, Any]:
    return {
        "used": filesizeformat(usage.used),
        "allowed": filesizeformat(usage.allowed) if usage.allowed else "",
        "own": usage.is_own,
        "megabytes": usage.allowed // MEGABYTE if usage.is_own else "",
        "used_up": usage.is_used_up,
    }


def _passkey_row(passkey: Wire) -> dict[str, Any]:
    return {
        "name": passkey["name"],
        "created": time_of(passkey["createdAt"]),
        "used": time_of(passkey["lastUsedAt"]),
    }


def _sessions(user_id: str) -> list[Wire]:
    where = Equals((FieldName("user"),), pointer("_User", user_id))
    return find(SESSION, where, (OrderKey((CREATED_AT,), True),), _SESSIONS + 1)


def session_row(session: Wire) -> dict[str, Any]:
    """Return a session for display, without its token."""
    began = session.get("createdWith")
    began = began if isinstance(began, dict) else {}
    return {
        "id": session["objectId"],
        "created": time_of(session["createdAt"]),
        "used": time_of(session["updatedAt"]),
        "expires": time_of(session.get("expiresAt")),
        "action": began.get("action", ""),
        "provider": began.get("authProvider", ""),
        "installation": session.get("installationId") or "",
    }


def _json(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
