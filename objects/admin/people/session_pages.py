"""Sessions of all users, and ending one."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.urls import reverse
from django.views.decorators.http import require_safe

from backend.kernel.errors import ServiceError
from backend.site.model_admin import page, render
from objects.admin.browser.pagination import PageOfRows
from objects.admin.people.pages import LONGEST, asked_page, back, get, names_of, note, pointed_at
from objects.admin.people.user_pages import PERMISSIONS, session_row
from objects.admin.staff_access import error_page
from objects.core.names import SESSION, FieldName
from objects.core.query.tree import Equals, Everything, Nothing, Query
from objects.core.values import pointer
from objects.users.accounts.directory import user_named
from objects.users.sessions import tokens as bearers

VIEW: Final = "objects.view_session"
_USER: Final = FieldName("user")


@page(
    "people/sessions/",
    name="people_sessions",
    permission=VIEW,
    title="Sessions",
    section="People",
    icon="key",
    position=20,
)
@require_safe
def sessions(request: HttpRequest) -> HttpResponseBase:
    """Show the newest sessions of all users or of one user. Tokens are never shown."""
    text = request.GET.get("user", "").strip()[:LONGEST]
    where: Query = Everything()
    if text:
        user_id = user_named(text)
        where = Nothing() if user_id is None else Equals((_USER,), pointer("_User", user_id))
    complaint, rows = "", PageOfRows([], None, None)
    try:
        rows = asked_page(request, SESSION, where)
    except ServiceError as error:
        complaint = error.message
    names = names_of({pointed_at(session.get("user")) for session in rows.rows} - {""})
    session_rows: list[dict[str, Any]] = []
    for session in rows.rows:
        user_id = pointed_at(session.get("user"))
        session_rows.append(
            session_row(session) | {"user": user_id, "name": names.get(user_id, "")}
        )
    return render(
        request,
        "admin/people/sessions.html",
        "Sessions",
        sessions=session_rows,
        newer=rows.before.encode() if rows.before else "",
        older=rows.after.encode() if rows.after else "",
        text=text,
        kept=f"&{urlencode({'user': text})}" if text else "",
        may_revoke=request.user.has_perm(PERMISSIONS["revoke"]),
        complaint=complaint,
    )


@page("people/sessions/revoke/", name="people_revoke", permission=PERMISSIONS["revoke"])
def revoke(request: HttpRequest) -> HttpResponseBase:
    """End a session."""
    if request.method != "POST":
        return HttpResponseNotAllowed(("POST",))
    session_id = request.POST.get("session", "")
    try:
        session = get(SESSION, session_id)
    except ServiceError as error:
        return error_page(request, error)
    bearers.end(session_id)
    note(request, "revoke", user=pointed_at(session.get("user")))
    messages.success(request, "The session has ended.")
    return back(request, reverse("admin:people_sessions"))
