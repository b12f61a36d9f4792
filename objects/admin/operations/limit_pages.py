"""Rate limits: the active rules, exhausted buckets, and resetting them."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.urls import reverse
from django.views.decorators.http import require_safe

from backend.kernel.errors import ServiceUnavailable
from backend.limits import state
from backend.limits.bucket_names import NEARLY
from backend.limits.state import Fullness, Overview
from backend.site.model_admin import page, render
from backend.site.staff import require
from objects.admin.people.pages import back, note
from objects.users.accounts.directory import user_named

CHANGE: Final = "backend.change_ratelimit"
_LONGEST = 256  # characters


@page(
    "limits/",
    name="limits",
    permission="backend.view_ratelimit",
    title="Rate limits",
    section="Operations",
    icon="speed",
    position=20,
)
@require_safe
def limits(request: HttpRequest) -> HttpResponseBase:
    """The rules, and the fullest buckets or those of one caller."""
    address, user, account = (
        request.GET.get(name, "").strip()[:_LONGEST] for name in ("address", "user", "account")
    )
    is_search = bool(address or user or account)
    overview, complaint = Overview([], True), ""
    try:
        if is_search:
            user_id = (user_named(user) or user) if user else ""
            overview = Overview(
                state.of_caller(address=address, user_id=user_id, account=account), True
            )
        else:
            overview = state.fullest()
    except ServiceUnavailable as error:
        complaint = error.message
    return render(
        request,
        "admin/operations/limits.html",
        "Rate limits",
        rules=state.rules_in_force(),
        buckets=[(bucket, _state(bucket)) for bucket in overview.buckets],
        complete=overview.complete,
        most_scanned=state.MOST_SCANNED,
        address=address,
        whose=user,
        account=account,
        is_search=is_search,
        may_reset=request.user.has_perm(CHANGE),
        complaint=complaint,
    )


def _state(bucket: Fullness) -> str:
    if bucket.used >= bucket.rule.count:
        return "over"
    return "near" if bucket.share >= NEARLY else "free"


@page("limits/reset/", name="limits_reset", permission=CHANGE)
def reset(request: HttpRequest) -> HttpResponseBase:
    """Reset the counter of a bucket."""
    if request.method != "POST":
        return HttpResponseNotAllowed(("POST",))
    require(request, CHANGE)
    key = request.POST.get("bucket", "")
    try:
        if state.reset(key):
            messages.success(request, "The limit was reset.")
            note(request, "reset rate limit", bucket=key)
        else:
            messages.info(request, "Nothing was counted there any more.")
    except ServiceUnavailable as error:
        messages.error(request, error.message)
    return back(request, reverse("admin:limits"))
