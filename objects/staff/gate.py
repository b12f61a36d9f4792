"""The gate of the admin: who a request's staff user is, and how often guesses are taken.

A password alone makes no staff user: until the second factor is passed, ``request.user`` is
anonymous on every page, and the pages lead to the second step or, where it is required, to the
set-up. Sessions from before a second factor was set up or required are led there as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Literal, cast
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.contrib.auth.middleware import AuthenticationMiddleware, get_user
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme

from backend.http.context import client_address
from backend.kernel.principal import CLIENT
from backend.kernel.texts.spelling import name_key
from backend.limits import Request, decide, rules_for
from objects.staff import second_factor

Step = Literal["second_factor", "second_factor_set_up"]
"""The name of the page that a staff user has to pass first."""

_PASSED: Final = "second_factor"
_STEP: Final = "_staff_step_due"
_FRESH: Final = 900  # seconds
_LOG_IN: Final = "login"
_LONGEST_NAME: Final = 150  # characters, as in Django's table
_STEPS: Final = frozenset(("second_factor", "second_factor_set_up"))
# The pages whose forms have a password or a code to compare.
_GUESSES: Final = frozenset((_LOG_IN, "password_change", "second_factor"))


def person(request: HttpRequest) -> User | None:
    """Return the staff user of the session, without checking the second factor."""
    user = get_user(request)
    return user if user.is_authenticated and user.is_staff else None


def step_due(request: HttpRequest) -> Step | None:
    """Return the page that the staff user has to pass before any other, or None."""
    if not hasattr(request, _STEP):
        setattr(request, _STEP, _step_due(request))
    return cast("Step | None", getattr(request, _STEP))


def _step_due(request: HttpRequest) -> Step | None:
    user = None if second_factor.is_off() else person(request)
    if user is None:
        return None
    since = second_factor.since(user.pk)
    if since is None:
        return "second_factor_set_up" if second_factor.is_required() else None
    return None if _passed(request).get("since") == since.isoformat() else "second_factor"


def note_passed(request: HttpRequest, user: User) -> None:
    """Let this session in, for as long as the staff user's oldest second factor is the same.

    Removing or resetting that one therefore ends what other sessions have passed.
    """
    since = second_factor.since(user.pk)
    request.session.cycle_key()
    if since is None:
        request.session.pop(_PASSED, None)
    else:
        request.session[_PASSED] = {"since": since.isoformat(), "at": time.time()}


def has_just_passed(request: HttpRequest) -> bool:
    """Whether the second factor was passed minutes ago, as changing it requires."""
    age = time.time() - cast("float", _passed(request).get("at", 0.0))
    return 0 <= age < _FRESH


def next_page(request: HttpRequest) -> str:
    """Return the page of ``next`` that the staff user is on the way to; else the start page."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        return target
    return reverse("admin:index")


def _passed(request: HttpRequest) -> dict[str, Any]:
    passed = request.session.get(_PASSED)
    return passed if isinstance(passed, dict) else {}


class StaffAuthentication(AuthenticationMiddleware):
    """Middleware: Django's, with the second factor and the limits of guesses."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        user = SimpleLazyObject(lambda: _admitted(request))
        request.user = cast("User", user)
        request.auser = sync_to_async(lambda: _admitted(request))

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        match = request.resolver_match
        if match is None or match.app_name != "admin":
            return None
        if request.method == "POST" and match.url_name in _GUESSES:
            refusal = _refusal(request, match.url_name)
            if refusal is not None:
                return refusal
        is_log_in = match.url_name == _LOG_IN and request.method == "POST"
        step = None if is_log_in or match.url_name in _STEPS else step_due(request)
        if step is None:
            return None
        target = request.get_full_path() if request.method == "GET" else ""
        if match.url_name == _LOG_IN:
            target = next_page(request)
        query = f"?{urlencode({'next': target})}" if target else ""
        return HttpResponseRedirect(reverse(f"admin:{step}") + query)


def _admitted(request: HttpRequest) -> User | AnonymousUser:
    user = get_user(request)
    return AnonymousUser() if step_due(request) else user


def _refusal(request: HttpRequest, page: str | None) -> HttpResponse | None:
    """Count a guess by the rules for ``/login``. Return the response if it exceeds the limit."""
    if page == _LOG_IN:
        name = request.POST.get("username", "")
    else:
        user = person(request)
        name = "" if user is None else user.get_username()
    rules = rules_for("/login", "POST")
    if not rules:
        return None
    # Staff and users of the same name are two accounts. Rules shorten long names, so the mark has
    # to be within what they read: any spaces around a name belong to the same account.
    parameters = {"username": f"{name_key(name)[:_LONGEST_NAME]} (staff)"}
    address = client_address(request.META)
    (verdict,) = decide([Request(rules, "/login", address, CLIENT, parameters=(parameters,))])
    if verdict.refusal is None:
        return None
    return HttpResponse(
        verdict.refusal.message,
        content_type="text/plain; charset=utf-8",
        status=verdict.refusal.status,
        headers=getattr(verdict.refusal, "headers", {}),
    )
