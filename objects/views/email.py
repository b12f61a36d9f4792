"""``/requestPasswordReset`` and ``/verificationEmailRequest`` (reference 1.2)."""

from __future__ import annotations

from backend.http.call import Call
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from objects.users.email import delivery


class RequestPasswordResetView(ServiceView):
    """Ask for a link for a new password."""

    with_session = False

    def post(self, call: Call) -> Answer:
        delivery.request_password_reset(call.body.get("email"))
        return Answer({})


class VerificationEmailRequestView(ServiceView):
    """Ask for another link that verifies an address."""

    with_session = False

    def post(self, call: Call) -> Answer:
        delivery.request_verification(call.body.get("email"))
        return Answer({})
