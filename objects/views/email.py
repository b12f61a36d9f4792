"""``/requestPasswordReset`` and ``/verificationEmailRequest`` (docs/users-mail.md)."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

from backend.http.call import Call
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.openapi import describes
from objects.users.email import delivery
from objects.views.bodies import DONE


class EmailForm(TypedDict):
    email: Annotated[str, Meta(examples=["ann@example.org"])]


class RequestPasswordResetView(ServiceView):
    """Ask for a link for a new password."""

    tag = "Users"
    with_session = False

    @describes(
        "requestPasswordReset",
        "Request a link for a new password",
        request=EmailForm,
        response=DONE,
    )
    def post(self, call: Call) -> Answer:
        delivery.request_password_reset(call.body.get("email"))
        return Answer({})


class VerificationEmailRequestView(ServiceView):
    """Ask for another link that verifies an address."""

    tag = "Users"
    with_session = False

    @describes(
        "requestVerification",
        "Request a link that verifies an address",
        request=EmailForm,
        response=DONE,
    )
    def post(self, call: Call) -> Answer:
        delivery.request_verification(call.body.get("email"))
        return Answer({})
