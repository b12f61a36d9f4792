"""When users get mail: to verify an address, to set a new password.

Mail is sent by a task, after the change that it is about is committed (``tasks``). Requests for
mail do the same work whether anybody has the address or not.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from backend.kernel.errors import (
    EmailMissing,
    EmailNotFound,
    InvalidEmailAddress,
    ServiceUnavailable,
)
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from backend.tasks.registered import task
from objects.database import maintenance
from objects.users.email import recipients, tokens
from objects.users.names import check_email

log = get_logger("mail")


def email_replaced(user_id: str) -> None:
    """Make every link worthless that was sent to the user's former address."""
    tokens.forget(user_id)


def email_given(user_id: str, email: object) -> None:
    """Send a link for verification, if the deployment wants one; a user has this address now."""
    settings = service_settings
    if settings.VERIFY_EMAIL and settings.SEND_VERIFICATION_EMAIL and isinstance(email, str):
        transaction.on_commit(lambda: _start_quietly(user_id))


def forget_tokens(user_id: str) -> None:
    """Make every link worthless that would set the user's password."""
    tokens.forget(user_id, tokens.RESET)


def request_password_reset(email: object) -> None:
    """Email a link for a new password to the user with this address.

    Raises ``UnderMaintenance``, ``EmailMissing``, ``InvalidEmailAddress``, and ``EmailNotFound``
    where the deployment wants unknown addresses reported.
    """
    maintenance.check()
    address = _address(email)
    if not service_settings.RESET_SUCCESS_ON_UNKNOWN_EMAIL and not recipients.reached_by(
        tokens.RESET, address=address
    ):
        raise EmailNotFound(f"No user found with email {address}.")
    transaction.on_commit(lambda: _start(tokens.RESET, address=address))


def send_password_reset(user_id: str) -> None:
    """Email a link for a new password to this user, as staff want it.

    Raises ``UnderMaintenance``, ``EmailNotFound`` for a user without an address, and
    ``ServiceUnavailable``.
    """
    maintenance.check()
    if recipients.reached_by(tokens.RESET, user_id=user_id) is None:
        raise EmailNotFound("This user has no email address.")
    transaction.on_commit(lambda: _start(tokens.RESET, user_id=user_id))


def request_verification(email: object) -> None:
    """Email a link for verification to the user with this unverified address.

    Raises ``UnderMaintenance``, ``EmailMissing`` and ``InvalidEmailAddress``.
    """
    maintenance.check()
    address = _address(email)
    if service_settings.VERIFY_EMAIL:
        transaction.on_commit(lambda: _start(tokens.VERIFY, address=address))


def _address(email: object) -> str:
    if email is None or email == "":
        raise EmailMissing("you must provide an email")
    if not isinstance(email, str):
        raise InvalidEmailAddress("you must provide a valid email string")
    return check_email(email)


def _start(purpose: str, **whose: Any) -> None:
    try:
        broker.send(task("objects.mail_link"), purpose, kwargs=whose)
    except BrokerAway as error:
        raise ServiceUnavailable("No mail can be sent at the moment.") from error


def _start_quietly(user_id: str) -> None:
    """The user is stored already and can request another email."""
    try:
        _start(tokens.VERIFY, user_id=user_id)
    except ServiceUnavailable:
        log.warning("verification mail not sent: no broker", user=user_id)
