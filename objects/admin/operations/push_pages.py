"""Pushes in the admin: the latest ones, and one with its failures.

Staff with the permissions send a push to one installation, and cancel pushes.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from backend.kernel.errors import InvalidValue, ObjectNotFound, ServiceError
from backend.kernel.json_types import Wire
from backend.kernel.texts.shown import shown
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from backend.site.model_admin import page, render
from backend.site.staff import principal_for, require
from objects.admin.people.pages import find, note
from objects.core.names import INSTALLATION, OBJECT_ID, FieldName, parse_object_id
from objects.core.query.tree import AnyOf, Equals
from objects.database.orm import orm_queries
from objects.push import service as pushes
from objects.push import statuses
from objects.push.expansion import decode_request
from objects.push.models import Push, PushTarget

VIEW: Final = "objects.view_push"
SEND: Final = "objects.add_push"
CANCEL: Final = "objects.delete_push"
_SHOWN: Final = 100  # pushes of the list, and failures of one
_LONGEST: Final = 1000  # characters of a text
_SHOWN_OF_A_TOKEN: Final = 8

log = get_logger("admin")


@page(
    "push/",
    name="pushes",
    permission=VIEW,
    title="Pushes",
    section="Operations",
    icon="notifications",
    position=45,
)
def push_list(request: HttpRequest) -> HttpResponseBase:
    """Show the latest pushes. Staff with the permission send one to a single installation."""
    complaint, installation, text = "", "", ""
    if request.method == "POST":
        require(request, SEND)
        installation = request.POST.get("installation", "").strip()[:_LONGEST]
        text = request.POST.get("text", "").strip()[:_LONGEST]
        try:
            push_id = _send(request, installation, text)
            return HttpResponseRedirect(reverse("admin:push", args=[push_id]))
        except ServiceError as error:
            complaint = error.message
    with orm_queries():
        rows = [_row(push) for push in Push.objects.order_by("-created_at")[:_SHOWN]]
    return render(
        request,
        "admin/operations/pushes.html",
        "Pushes",
        pushes=rows,
        days=service_settings.PUSH_RETENTION,
        adapters=sorted(service_settings.PUSH_ADAPTERS.items()),
        may_send=request.user.has_perm(SEND),
        installation=installation or request.GET.get("installation", "")[:_LONGEST],
        text=text,
        longest=_LONGEST,
        complaint=complaint,
    )


def _send(request: HttpRequest, installation: str, text: str) -> str:
    """Send a text to one installation. Raises ``ServiceError``."""
    if not text:
        raise InvalidValue("The notification needs a text.")
    principal = principal_for(request.user, SEND)
    stored = _installation(installation)
    if not stored.get("deviceToken"):
        raise InvalidValue("The installation has no device token: nothing can be sent to it.")
    body: dict[str, Any] = {"where": {"objectId": stored["objectId"]}, "data": {"alert": text}}
    push_id = pushes.send(principal, body, source="admin")
    log.info("push sent by staff", push=push_id, staff=request.user.get_username())
    messages.success(request, "The push is being sent.")
    return push_id


def _installation(text: str) -> Wire:
    """Return the installation with this objectId or installationId. Raises ``ObjectNotFound``."""
    by_object_id = Equals((OBJECT_ID,), text)
    by_installation_id = [
        Equals((FieldName("installationId"),), value) for value in {text, text.lower()}
    ]
    matches = find(INSTALLATION, AnyOf((by_object_id, *by_installation_id)), (), 2)
    if not matches:
        raise ObjectNotFound(f"No installation has {shown(text)} as objectId or installationId.")
    exact = [match for match in matches if match["objectId"] == text]
    return (exact or matches)[0]


@page("push/<str:push_id>/", name="push", permission=VIEW)
@require_safe
def push_page(request: HttpRequest, push_id: str) -> HttpResponseBase:
    """Show one push with the numbers of its targets, and the latest of those that failed."""
    with orm_queries():
        push = Push.objects.filter(pk=push_id).first()
        if push is None:
            raise Http404
        states = dict(
            push.targets.values_list("state").annotate(number=Count("pk")).order_by("state")
        )
        waiting = push.targets.filter(state=PushTarget.State.PENDING).exclude(error="")
        failed = push.targets.filter(state__in=(PushTarget.State.FAILED, PushTarget.State.GONE))
        targets = [*failed.order_by("-id")[:_SHOWN], *waiting.order_by("-id")[:_SHOWN]]
    request_of_push = decode_request(push.request)
    return render(
        request,
        "admin/operations/push.html",
        f"Push {push.pk}",
        push=_row(push),
        states=[(PushTarget.State(name).label, number) for name, number in states.items()],
        query=_text(request_of_push.where),
        payload=_text(request_of_push.data),
        targets=[_target(target) for target in targets],
        may_see_installations=request.user.has_perm("objects.view_installation"),
        may_cancel=push.state != Push.State.ENDED and request.user.has_perm(CANCEL),
    )


@page("push/<str:push_id>/cancel/", name="push_cancel", permission=CANCEL)
@require_http_methods(["GET", "HEAD", "POST"])
def cancel_page(request: HttpRequest, push_id: str) -> HttpResponseBase:
    """Cancel a push, after a confirmation."""
    with orm_queries():
        push = Push.objects.filter(pk=push_id).first()
    if push is None:
        raise Http404
    if request.method == "POST":
        pushes.cancel(principal_for(request.user, CANCEL), parse_object_id(push_id))
        note(request, "cancel push", push=push_id)
        messages.success(request, "The push is cancelled.")
        return HttpResponseRedirect(reverse("admin:push", args=[push_id]))
    return render(
        request, "admin/operations/push_cancel.html", f"Cancel push {push.pk}?", push=_row(push)
    )


def _row(push: Push) -> dict[str, Any]:
    request = decode_request(push.request)
    alert = request.data.get("alert")
    return {
        "id": push.pk,
        "alert": alert if isinstance(alert, str) else _text(alert) if alert else "",
        "status": statuses.current_status(push, request),
        "is_cancelled": statuses.is_cancelled(push),
        "error": _message(push.error),
        "sent": push.sent,
        "failed": push.failed,
        "source": push.source,
        "created": push.created_at,
        "ended": push.ended_at,
        "push_time": request.push_time or "",
    }


def _message(error: str) -> str:
    return str(msgspec.json.decode(error)["message"]) if error else ""


def _target(target: PushTarget) -> dict[str, Any]:
    return {
        "installation": target.installation,
        "type": target.push_type,
        # It is what notifications are sent to: not all of it is shown.
        "token": f"{target.device_token[:_SHOWN_OF_A_TOKEN]}…",
        "state": target.get_state_display(),
        "attempts": target.attempts,
        "error": target.error,
    }


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
