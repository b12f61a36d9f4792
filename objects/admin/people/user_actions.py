"""Actions of staff on users, through the object service or the account functions.

Each action is a POST, requires a separate permission, and is logged with the name of the staff
user.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.http import HttpResponseRedirect as Redirect
from django.urls import reverse

from backend.kernel.errors import InvalidJSON, ObjectNotFound, ServiceError, ValidationFailed
from backend.kernel.principal import Principal
from backend.site.model_admin import page
from backend.site.staff import principal_for, require
from objects import service
from objects.admin.people.pages import get, note, pointed_at
from objects.admin.people.user_pages import MEGABYTE, PERMISSIONS, VIEW, show_user
from objects.admin.staff_access import error_page
from objects.core.names import SESSION, USER, parse_object_id
from objects.database import maintenance
from objects.files import quotas
from objects.users.accounts import passwords
from objects.users.email import delivery
from objects.users.sessions import tokens

_Act = Callable[[HttpRequest, Principal, str], str]


@dataclass(frozen=True)
class Action:
    """``act`` performs the action and returns a message for staff; ``permission`` is required."""

    permission: str
    act: _Act
    leads_to_list: bool = False


@page("people/users/<str:user_id>/<str:name>/", name="people_user_action", permission=VIEW)
def user_action(request: HttpRequest, user_id: str, name: str) -> HttpResponseBase:
    """Perform one of ``ACTIONS`` on a user."""
    action = ACTIONS.get(name)
    if action is None:
        raise Http404
    require(request, action.permission)
    if request.method != "POST":
        return HttpResponseNotAllowed(("POST",))
    try:
        get(USER, user_id)
        message = action.act(request, principal_for(request.user, action.permission), user_id)
    except ServiceError as error:
        return _refused(request, user_id, error)
    note(request, name, user=user_id)
    messages.success(request, message)
    if action.leads_to_list:
        return Redirect(reverse("admin:people_users"))
    return Redirect(reverse("admin:people_user", args=(user_id,)))


def _refused(request: HttpRequest, user_id: str, error: ServiceError) -> HttpResponseBase:
    try:
        return show_user(request, user_id, error.message, error.status)
    except ServiceError:
        return error_page(request, error)


def _revoke(request: HttpRequest, principal: Principal, user_id: str) -> str:
    session_id = request.POST.get("session", "")
    if pointed_at(get(SESSION, session_id).get("user")) != user_id:
        raise ObjectNotFound("This user has no such session.")
    tokens.end(session_id)
    return "The session has ended."


def _revoke_all(request: HttpRequest, principal: Principal, user_id: str) -> str:
    tokens.end_all_of(user_id)
    return "All sessions of the user have ended."


def _unlock(request: HttpRequest, principal: Principal, user_id: str) -> str:
    passwords.forget_guesses(user_id)
    return "The account is unlocked, and the count of wrong passwords is reset."


def _send_reset(request: HttpRequest, principal: Principal, user_id: str) -> str:
    delivery.send_password_reset(user_id)
    return "An email with a link for a new password was queued."


def _set_password(request: HttpRequest, principal: Principal, user_id: str) -> str:
    password = request.POST.get("password", "")
    if password != request.POST.get("again", ""):
        raise ValidationFailed("The two passwords differ.")
    service.update(principal, USER, parse_object_id(user_id), {"password": password})
    passwords.forget_guesses(user_id)
    return "The password is set. Tell it to the user over a way that you trust."


def _reset_second_factor(request: HttpRequest, principal: Principal, user_id: str) -> str:
    service.update(principal, USER, parse_object_id(user_id), {"authData": {"mfa": None}})
    return "The second factor is off. The user can set up a new one."


def _unlink(request: HttpRequest, principal: Principal, user_id: str) -> str:
    provider = request.POST.get("provider", "")
    if not provider or provider == "mfa":
        raise InvalidJSON("There is no such provider.")
    service.update(principal, USER, parse_object_id(user_id), {"authData": {provider: None}})
    return f"The user can't sign in with {provider} any more."


def _set_file_quota(request: HttpRequest, principal: Principal, user_id: str) -> str:
    text = request.POST.get("megabytes", "").strip()
    most = quotas.MOST // MEGABYTE
    if text and not (text.isascii() and text.isdecimal() and len(text) < 17 and int(text) <= most):
        raise ValidationFailed(f"megabytes: expected a whole number up to {most}, or nothing.")
    with maintenance.writing():
        quotas.set_quota(user_id, int(text) * MEGABYTE if text else None)
    return "The storage quota is changed."


def _delete(request: HttpRequest, principal: Principal, user_id: str) -> str:
    if request.POST.get("confirm") != user_id:
        raise ValidationFailed("Confirm that the user is to be deleted.")
    service.delete(principal, USER, parse_object_id(user_id))
    return "The user is deleted."


ACTIONS: Final = {
    "revoke": Action(PERMISSIONS["revoke"], _revoke),
    "revoke-all": Action(PERMISSIONS["revoke"], _revoke_all),
    "unlock": Action(PERMISSIONS["change"], _unlock),
    "send-reset": Action(PERMISSIONS["change"], _send_reset),
    "set-password": Action(PERMISSIONS["password"], _set_password),
    "reset-second-factor": Action(PERMISSIONS["second_factor"], _reset_second_factor),
    "unlink": Action(PERMISSIONS["identity"], _unlink),
    "file-quota": Action(PERMISSIONS["file_quota"], _set_file_quota),
    "delete": Action(PERMISSIONS["delete"], _delete, leads_to_list=True),
}
