"""The pages of a staff user's own second factor: the second step of a login, and the set-up.

Both work without scripts for authenticator apps; passkeys need one, which hands the options in a
form to the browser and its answer to the form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, cast
from urllib.parse import urlencode

import msgspec
import pyotp
import segno
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core import signing
from django.http import HttpRequest, HttpResponseBase
from django.http import HttpResponseRedirect as Redirect
from django.urls import reverse

from backend.http.context import client_address
from backend.kernel.errors import InvalidSecondFactor, RateLimited, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.networks import client_network
from backend.logs.setup import get_logger
from backend.site.model_admin import page, render
from objects.staff import gate, passkeys, second_factor
from objects.users.passkeys import keys, relying_party

_FORM: Final = "objects.admin.second_factor"
_FORM_LASTS: Final = 3600  # seconds
_RECOVERY_CODE: Final = 30  # characters

log = get_logger("admin")


def _staff_user(request: HttpRequest) -> User | HttpResponseBase:
    """Return the staff user whom these pages are for, or the way to another page."""
    user = gate.person(request)
    if user is None:
        return redirect_to_login(request.get_full_path(), reverse("admin:login"))
    return Redirect(reverse("admin:index")) if second_factor.is_off() else user


@page(
    "second-factor/",
    name="second_factor",
    permission=None,
    title="Second factor",
    is_before_log_in=True,
)
def second_step(request: HttpRequest) -> HttpResponseBase:
    """Take a code or a passkey of the staff user whom the password has proven."""
    user = _staff_user(request)
    if isinstance(user, HttpResponseBase):
        return user
    if "leave" in request.POST:
        logout(request)
        return Redirect(reverse("admin:login"))
    standing = second_factor.standing(user)
    if not standing.is_set_up:
        return Redirect(reverse(f"admin:{gate.step_due(request) or 'index'}"))
    complaint = ""
    if request.method == "POST":
        try:
            _check(request, user)
        except ServiceError as error:
            log.warning(
                "staff second factor refused",
                staff=user.get_username(),
                address=client_address(request.META),
                reason=error.message,
            )
            complaint = _complaint(error)
        else:
            gate.note_passed(request, user)
            return Redirect(gate.next_page(request))
    options = None
    if standing.passkeys:
        options = _options(request, user, passkeys.request_options)
    return render(
        request,
        "admin/second_factor/step.html",
        "Second factor",
        name=user.get_username(),
        next=gate.next_page(request),
        has_app=standing.app_since is not None,
        options=options,
        complaint=complaint,
    )


def _check(request: HttpRequest, user: User) -> None:
    if request.POST.get("answer"):
        party = passkeys.party_of(request.get_host())
        passkeys.check(party, user, _posted(request, "token"), _posted(request, "answer"))
        return
    code = "".join(_posted(request, "code").split())
    second_factor.check(user, code)
    if len(code) == _RECOVERY_CODE:
        left = second_factor.standing(user).recovery_codes
        log.warning("staff recovery code used", staff=user.get_username(), left=left)
        messages.warning(request, f"You have {left} recovery codes left.")


@page(
    "second-factor/set-up/",
    name="second_factor_set_up",
    permission=None,
    title="Set up a second factor",
    is_before_log_in=True,
)
def set_up(request: HttpRequest) -> HttpResponseBase:
    """Show and change what the staff user has set up; nothing else is open while that is due."""
    user = _staff_user(request)
    if isinstance(user, HttpResponseBase):
        return user
    seen, standing = second_factor.since(user.pk), second_factor.standing(user)
    # A session alone, which may be stolen, changes nothing: the second factor comes first again.
    if standing.is_set_up and (gate.step_due(request) or not gate.has_just_passed(request)):
        query = urlencode({"next": reverse("admin:second_factor_set_up")})
        return Redirect(f"{reverse('admin:second_factor')}?{query}")
    complaint = ""
    if request.method == "POST":
        try:
            codes = _changed(request, user, seen)
            gate.note_passed(request, user)
        except ServiceError as error:
            complaint = _complaint(error)
        else:
            if codes:
                return render(
                    request,
                    "admin/second_factor/codes.html",
                    "Recovery codes",
                    codes=codes,
                    next=gate.next_page(request),
                )
            return Redirect(reverse("admin:second_factor_set_up"))
    secret = _secret_of_form(request, user) or pyotp.random_base32()
    return render(
        request,
        "admin/second_factor/set_up.html",
        "Second factor",
        name=user.get_username(),
        next=gate.next_page(request),
        is_due=not standing.is_set_up and second_factor.is_required(),
        standing=standing,
        passkeys=standing.passkeys,
        options=_options(request, user, passkeys.creation_options),
        longest_name=keys.LONGEST_NAME,
        secret=" ".join(re.findall("....", secret)),
        signed=signing.dumps([user.pk, secret], salt=_FORM),
        picture=_picture(user, secret),
        complaint=complaint,
    )


def _changed(request: HttpRequest, user: User, seen: datetime | None) -> list[str]:
    """Do what the form says; return recovery codes to be shown once, if there are new ones.

    ``seen`` is since when the user had a second factor when the request was admitted.
    """
    action = _posted(request, "action")
    if action == "app":
        secret = _secret_of_form(request, user)
        if secret is None:
            raise InvalidSecondFactor("The page is too old. Scan the code below.")
        code = "".join(_posted(request, "code").split())
        return second_factor.set_up_app(user, secret, code, seen=seen)
    if action == "passkey":
        party = passkeys.party_of(request.get_host())
        parts = (_posted(request, name) for name in ("token", "answer", "name"))
        return passkeys.add(party, user, *parts, seen=seen)
    if action == "codes" and second_factor.standing(user).is_set_up:
        return second_factor.renew_codes(user)
    if action == "remove-app":
        second_factor.remove_app(user)
    elif action == "remove-passkey":
        second_factor.remove_passkey(user, _posted(request, "id"))
    return []


def _posted(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "")


def _complaint(error: ServiceError) -> str:
    if error.message == InvalidSecondFactor().message:
        return "The code is wrong or was used before. Enter the one that the app shows now."
    return error.message


def _secret_of_form(request: HttpRequest, user: User) -> str | None:
    """Return the secret that the form was made with; a failed attempt keeps it."""
    try:
        owner, secret = signing.loads(_posted(request, "signed"), salt=_FORM, max_age=_FORM_LASTS)
    except signing.BadSignature:
        return None
    return cast("str", secret) if owner == user.pk else None


def _picture(user: User, secret: str) -> str:
    """Return the QR code for authenticator apps as an address with its data in it."""
    address = pyotp.TOTP(secret).provisioning_uri(
        name=user.get_username(), issuer_name=relying_party.name()
    )
    return segno.make_qr(address, error="m").svg_data_uri(scale=4, light="white")


def _options(
    request: HttpRequest,
    user: User,
    make: Callable[[Any, User, str], dict[str, Json]],
) -> dict[str, str] | None:
    """Return the options of a passkey form; None where no browser has passkeys, or for now."""
    party = passkeys.party_of(request.get_host())
    if not party.has_name:
        return None
    try:
        options = make(party, user, client_network(client_address(request.META)))
    except RateLimited:
        return None
    token = str(options["temporaryAuthenticationToken"])
    return {"json": msgspec.json.encode(options).decode(), "token": token}
