"""The page that explains why a caller has access or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from backend.kernel.errors import ServiceError
from backend.kernel.principal import CLIENT, MASTER, READ_ONLY_MASTER, Principal
from backend.site.model_admin import page, render
from objects.core.access.class_permissions import ACTIONS, Action
from objects.definitions import registry
from objects.explanations.access import explain
from objects.explanations.texts import describe
from objects.users.accounts.directory import user_named
from objects.users.accounts.impersonation import as_user

_KEYS: Final = {"public": CLIENT, "master": MASTER, "reader": READ_ONLY_MASTER}
_CALLERS: Final = {
    "user": "a user",
    "public": "a caller who isn't logged in",
    "master": "the master key",
    "reader": "the read-only master key",
}
_LONGEST = 256  # characters


@dataclass(frozen=True)
class Asked:
    """What was filled in."""

    class_name: str
    action: str
    object_id: str
    caller: str
    user: str


@page(
    "access/",
    name="access",
    permission="objects.view_storedobject",
    title="Why may … ?",
    section="Operations",
    icon="rule",
    position=30,
)
@require_safe
def access(request: HttpRequest) -> HttpResponseBase:
    """A form, and the rules that decide what was asked."""
    question = Asked(
        _given(request, "class"),
        _given(request, "action") or "get",
        _given(request, "object"),
        _given(request, "caller") or "user",
        _given(request, "user"),
    )
    complaint = ""
    explanation = principal = None
    if question.class_name and question.action in ACTIONS:
        action: Action = question.action
        try:
            principal = _principal(question)
            explanation = explain(principal, question.class_name, action, question.object_id)
        except ServiceError as error:
            complaint = error.message
    return render(
        request,
        "admin/operations/access.html",
        "Why may this caller, or why not?",
        asked=question,
        actions=ACTIONS,
        callers=_CALLERS,
        class_names=[table.class_name for table in registry.all_classes()],
        found=explanation,
        who=describe(principal) if principal is not None else "",
        complaint=complaint,
    )


def _given(request: HttpRequest, name: str) -> str:
    return request.GET.get(name, "").strip()[:_LONGEST]


def _principal(question: Asked) -> Principal:
    """Return the principal to check. Raises ``ObjectNotFound`` for an unknown user."""
    if question.caller in _KEYS:
        return _KEYS[question.caller]
    return as_user(user_named(question.user) or question.user)[0]
