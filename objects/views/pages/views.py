"""The pages behind mailed links (docs/users-mail.md): verify an address, choose a password.

They need no key: the token of the link is the proof. No cookie or session takes part either, so a
form that another site sends can do nothing that the sender couldn't do alone, and there is no
CSRF token. GET changes nothing: programs that look at mail may open links; only the form's button
uses a token up.

``request_password_reset`` and ``verify_email`` answer scripts with JSON, as Parse does, for
deployments with pages of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views import View

from backend.http import rate_limits
from backend.http.authentication import is_application
from backend.http.context import client_address
from backend.http.exceptions import as_service_error, error_response
from backend.http.renderers import json_response
from backend.http.views import MethodNotAllowed
from backend.kernel.errors import (
    CommandUnavailable,
    EmailMissing,
    EmailNotFound,
    InternalError,
    InvalidApplicationId,
    InvalidEmailAddress,
    InvalidLink,
    ObjectTooLarge,
    OtherCause,
    PasswordMissing,
    RateLimited,
    ServiceError,
    ServiceUnavailable,
    ValidationFailed,
)
from backend.kernel.json_types import Schema
from backend.kernel.principal import APPLICATION
from backend.openapi import Body, Response, answer, describes, query, ref
from backend.openapi.descriptions import Handler
from backend.openapi.operations import JSON_TYPE
from backend.settings.conf import service_settings
from objects.users.email import delivery, links
from objects.views.pages import forms
from objects.views.pages.forms import Sent
from objects.views.pages.responses import address_of, page, see_other

# Pages that only say something; a name is looked up here and is never part of a path.
_NOTICES = frozenset(
    {
        *("email_verified", "password_changed", "reset_mail_sent", "verification_mail_sent"),
        *("invalid_reset_link", "invalid_verification_link"),
    }
)
_NAMES_IN_PARSE = {
    "email_verification_link_expired.html": "invalid_verification_link",
    "email_verification_link_invalid.html": "invalid_verification_link",
    "email_verification_send_success.html": "verification_mail_sent",
    "email_verification_success.html": "email_verified",
    "invalid_link.html": "invalid_reset_link",
    "invalid_verification_link.html": "invalid_verification_link",
    "link_send_success.html": "verification_mail_sent",
    "password_reset_link_invalid.html": "invalid_reset_link",
    "password_reset_success.html": "password_changed",
    "verify_email_success.html": "email_verified",
}
_DONE = "Password successfully reset"
# Parse's message: a script compares it.
_NOT_RESET = "Failed to reset password: username / email / token is invalid"
_TEXT: Schema = {"type": "string"}
_FAILURE = Body({"text/html": str, JSON_TYPE: ref("ErrorAnswer")})
_FAILURES = tuple(
    Response(status, description, _FAILURE)
    for status, description in (
        (400, "What was sent isn't right."),
        (403, "Another application's id, for scripts."),
        (404, "There is no such page, or the link is no longer valid."),
        (429, "Too many requests."),
        (500, "An internal error."),
        (503, "Something that the service needs can't be reached."),
    )
)
_describes_page = partial(
    describes,
    response=Response(200, "The page.", Body({"text/html": str})),
    errors=_FAILURES,
    is_public=True,
    method="get",
)
_TOKEN = query("token", _TEXT, "From the link.")


def _describes_form(id_: str, summary: str, *fields: str) -> Callable[[Handler], Handler]:
    form = {"type": "object", "properties": dict.fromkeys(fields, _TEXT)}
    return describes(
        id_,
        summary,
        request=Body({"application/x-www-form-urlencoded": form, JSON_TYPE: form}),
        response=(
            answer("For scripts.", {"type": ["object", "string"]}),
            Response(303, "The page to go to.", headers={"Location": {"schema": _TEXT}}),
        ),
        errors=(
            *_FAILURES,
            Response(413, "The form is too large.", _FAILURE),
            Response(415, "Neither a form nor JSON.", _FAILURE),
        ),
        is_public=True,
        method="post",
    )


class PageView(View):
    """A page. Subclasses define ``show`` for GET and ``take`` for POST, as ``(sent)``."""

    tag = "Pages"

    def dispatch(self, request: HttpRequest, *args: Any, **names: str) -> HttpResponse:
        try:
            sent = forms.read(request)
            self._enter(request, sent)
            response = self._handler(request)(sent)
        except Exception as error:
            response = _failed(error, request)
        return rate_limits.stamped(response, request)

    def _enter(self, request: HttpRequest, sent: Sent) -> None:
        rate_limits.enter(
            request,
            request.method or "",
            client_address(request.META),
            APPLICATION,
            "",
            sent.fields,
            stands_for=self._stands_for(sent) if request.method == "POST" else None,
        )

    def _stands_for(self, sent: Sent) -> str | None:
        """The REST route that does the same as a POST; its rate limits hold here as well."""
        return None

    def _handler(self, request: HttpRequest) -> Callable[[Sent], HttpResponse]:
        app_id = self.kwargs.get("app_id")
        if app_id is not None and not is_application(app_id):
            raise InvalidApplicationId
        method = "GET" if request.method == "HEAD" else request.method or ""
        names = {"GET": "show", "POST": "take"}
        handler: Callable[[Sent], HttpResponse] | None = getattr(self, names.get(method, ""), None)
        if handler is None:
            raise MethodNotAllowed(method, tuple(m for m in names if hasattr(self, names[m])))
        return handler


# -- Verifying an address -------------------------------------------------------------------------


class VerifyEmailPage(PageView):
    """The link of a verification mail: a button, and what it does."""

    @_describes_page("verifyEmailPage", "The link of a verification mail", parameters=(_TOKEN,))
    def show(self, sent: Sent) -> HttpResponse:
        token = sent.text("token")
        holder = links.account_of_verification(token)
        return page(
            "verify_email", token=token, address=holder.address, action=address_of("verify_email")
        )

    @_describes_form("verifyEmail", "Verify an address", "token")
    def take(self, sent: Sent) -> HttpResponse:
        links.verify_email(sent.fields.get("token"))
        return json_response({}) if sent.wants_json else see_other("email_verified")


class ResendVerificationPage(PageView):
    """Another verification mail, for whom the link of the former one is too old."""

    def _stands_for(self, sent: Sent) -> str | None:
        return "/verificationEmailRequest"

    @_describes_page("resendVerificationPage", "Request another verification mail")
    def show(self, sent: Sent) -> HttpResponse:
        return page("resend_verification")

    @_describes_form("resendVerification", "Send another verification mail", "email")
    def take(self, sent: Sent) -> HttpResponse:
        try:
            delivery.request_verification(sent.fields.get("email"))
        except _BAD_ADDRESS as error:
            if sent.wants_json:
                raise
            return _address_refused("resend_verification", sent, error)
        return json_response({}) if sent.wants_json else see_other("verification_mail_sent")


# -- Choosing a password --------------------------------------------------------------------------


class ResetPasswordPage(PageView):
    """The link of a reset mail. Without a token: ask for one."""

    def _stands_for(self, sent: Sent) -> str | None:
        # A password that the policy refuses may be corrected without waiting.
        return None if "token" in sent.fields else "/requestPasswordReset"

    @_describes_page("resetPasswordPage", "The link of a reset mail", parameters=(_TOKEN,))
    def show(self, sent: Sent) -> HttpResponse:
        if "token" not in sent.fields:
            return page("request_reset")
        return _password_form(sent)

    @_describes_form(
        "resetPassword",
        "Set a password, or request a link",
        *("token", "new_password", "repeat_password", "email"),
    )
    def take(self, sent: Sent) -> HttpResponse:
        if "token" not in sent.fields and "email" in sent.fields:
            return self._ask(sent)
        if sent.wants_json:
            return self._set_by_script(sent)
        try:
            _check_repetition(sent)
            links.set_password(sent.text("token"), sent.text("new_password"))
        except (PasswordMissing, ValidationFailed) as error:
            return _password_form(sent, error)
        return see_other("password_changed")

    def _ask(self, sent: Sent) -> HttpResponse:
        try:
            delivery.request_password_reset(sent.fields.get("email"))
        except _BAD_ADDRESS as error:
            if sent.wants_json:
                raise
            return _address_refused("request_reset", sent, error)
        return json_response({}) if sent.wants_json else see_other("reset_mail_sent")

    def _set_by_script(self, sent: Sent) -> HttpResponse:
        if not sent.fields.get("token"):
            raise OtherCause("Missing token")
        if not sent.fields.get("new_password"):
            raise PasswordMissing("Missing password")
        try:
            links.set_password(sent.fields["token"], sent.fields["new_password"])
        except InvalidLink:
            raise OtherCause(_NOT_RESET) from None
        return json_response(_DONE)


class ChoosePasswordPage(PageView):
    """The same form under Parse's other name for it, with the application in ``id``."""

    @_describes_page(
        "choosePasswordPage",
        "Choose a password",
        parameters=(_TOKEN, query("id", _TEXT, "The application id.")),
    )
    def show(self, sent: Sent) -> HttpResponse:
        if not is_application(sent.text("id")):
            raise InvalidApplicationId
        return _password_form(sent)


_PASSWORD_ERRORS = {PasswordMissing.code: "Enter a new password."}
_ADDRESS_ERRORS = {
    EmailMissing.code: "Enter your email address.",
    InvalidEmailAddress.code: "Enter an email address such as name@example.org.",
    EmailNotFound.code: "There is no account with this email address.",
}
_BAD_ADDRESS = (EmailMissing, InvalidEmailAddress, EmailNotFound)


def _check_repetition(sent: Sent) -> None:
    repeated = sent.fields.get("repeat_password")
    if repeated is not None and repeated != sent.fields.get("new_password"):
        raise ValidationFailed("The two passwords are not the same.")


def _password_form(sent: Sent, error: ServiceError | None = None) -> HttpResponse:
    token = sent.text("token")
    holder = links.account_of_reset(token)
    settings = service_settings
    return page(
        "choose_password",
        status=200 if error is None else 400,
        token=token,
        username=holder.username,
        action=address_of("request_password_reset"),
        ends_sessions=settings.REVOKE_SESSIONS_ON_PASSWORD_CHANGE,
        hint=settings.PASSWORD_MESSAGE if settings.PASSWORD_PATTERN else "",
        error=error and _PASSWORD_ERRORS.get(error.code, error.message),
    )


def _address_refused(name: str, sent: Sent, error: ServiceError) -> HttpResponse:
    message = _ADDRESS_ERRORS.get(error.code, error.message)
    return page(name, status=400, error=message, email=sent.text("email")[:256])


# -- Pages that only say something ----------------------------------------------------------------


class NoticePage(PageView):
    """One of the pages to which forms lead."""

    @_describes_page("noticePage", "A page to which forms lead")
    def show(self, sent: Sent) -> HttpResponse:
        return _notice(self.kwargs["notice"])


class NamedPage(PageView):
    """The same pages under Parse's names for them, without the application's id."""

    @_describes_page("namedPage", "A page to which forms lead, by Parse's name for it")
    def show(self, sent: Sent) -> HttpResponse:
        return _notice(_NAMES_IN_PARSE.get(self.kwargs["notice"], ""))


def _notice(name: str) -> HttpResponse:
    if name not in _NOTICES:
        raise CommandUnavailable("There is no such page.", status=404)
    return page(name)


# -- When something is wrong ----------------------------------------------------------------------

_TITLES: dict[type[ServiceError], tuple[str, str]] = {
    RateLimited: ("Too many attempts", "Wait a while, then try again."),
    ServiceUnavailable: ("Not available at the moment", "Try again in a few minutes."),
    ObjectTooLarge: ("That is too much", "The form holds more than it may."),
    InvalidApplicationId: ("There is no such page", "Check the address, or follow the link again."),
    CommandUnavailable: ("There is no such page", "Check the address, or follow the link again."),
    InternalError: (
        "Something went wrong",
        "Try again. If it goes wrong again, tell us the number below.",
    ),
}


def _failed(error: Exception, request: HttpRequest) -> HttpResponse:
    """An error as JSON for scripts, as a page for people."""
    if forms.wants_json(request):
        return error_response(error, request)
    try:
        return _error_page(error, request)
    except Exception as fault:  # a deployment's own templates may be broken
        return error_response(fault, request)


def _error_page(error: Exception, request: HttpRequest) -> HttpResponse:
    if isinstance(error, InvalidLink):
        verifying = request.path_info.endswith("/verify_email")
        return page("invalid_verification_link" if verifying else "invalid_reset_link", status=404)
    request_id = getattr(request, "id", "-")
    shown = as_service_error(error, request_id)
    status = 404 if isinstance(shown, InvalidApplicationId) else shown.status
    titles = (text for kind, text in _TITLES.items() if isinstance(shown, kind))
    title, text = next(titles, ("That isn't possible", shown.message))
    response = page("error", status, title=title, text=text, request_id=request_id)
    for name, value in getattr(error, "headers", {}).items():
        response.headers[name] = value
    return response
