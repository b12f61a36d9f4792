"""The task that sends emails with links.

Tokens never pass the broker: the worker makes a token when it writes the email. The requester
learns nothing either, because the account is looked up here as well. An email that can't be
sent is tried again for about three hours, with a new token each time; the last one counts.
"""

from __future__ import annotations

from typing import Any

from celery import Task, shared_task
from django.conf import settings

from backend.kernel.errors import Held, ServiceError, UnderMaintenance
from backend.kernel.principal import MASTER
from backend.logs.setup import get_logger
from backend.tasks import lanes
from objects import service, triggers
from objects.core.names import USER, ObjectId
from objects.database import hold
from objects.storage.records import wire_object
from objects.triggers import Occasion
from objects.users.email import messages, recipients, tokens

log = get_logger("mail")

ATTEMPTS = 12
_FIRST_PAUSE, _LONGEST_PAUSE = 5, 1800  # seconds


class MailNotSent(Exception):
    """Says what kind of error it was; the text of the error itself may name an address."""


@shared_task(name="objects.mail_link", bind=True, ignore_result=True, max_retries=ATTEMPTS - 1)
def mail_link(
    self: Task[Any, Any], purpose: str, *, user_id: str | None = None, address: str | None = None
) -> None:
    """Email a link to a user, or to the user with the address, if there is one."""
    with lanes.task_place(self, lanes.MAILS, "mail server"):
        _mail_link(self, purpose, user_id, address)


def _mail_link(
    self: Task[Any, Any], purpose: str, user_id: str | None, address: str | None
) -> None:
    recipient = recipients.reached_by(purpose, user_id=user_id, address=address)
    if recipient is None:
        return
    if not messages.is_one_mailbox(recipient.address):
        log.warning("no mail is sent to an address that isn't one mailbox", user=recipient.user_id)
        return
    if purpose == tokens.RESET and _is_refused(recipient.user_id):
        return
    try:
        hold.check("emails")
        token = tokens.issue(recipient.user_id, purpose, recipient.address)
    except (Held, UnderMaintenance) as refused:
        failure: str | None = type(refused).__name__
    else:
        if token is None:
            return
        failure = _failure(recipient.address, purpose, token)
    if failure is not None:
        attempt = self.request.retries
        log.warning("mail not sent", error=failure, attempt=attempt + 1)
        pause = min(_FIRST_PAUSE * 3**attempt, _LONGEST_PAUSE)
        # This one may have come from an overflow, where the next attempt doesn't belong.
        queue = settings.CELERY_TASK_DEFAULT_QUEUE
        raise self.retry(exc=MailNotSent(failure), countdown=pause, queue=queue)
    log.info("mail sent", purpose=purpose, user=recipient.user_id)


def _is_refused(user_id: str) -> bool:
    """Whether a trigger keeps the user from a new password.

    Here and not while the request is answered, whose answer must not tell who has an account.
    """
    if not triggers.has(USER, "before_password_reset"):
        return False
    user = wire_object(service.get(MASTER, USER, ObjectId(user_id)))
    try:
        triggers.run(Occasion("before_password_reset", USER, MASTER, object=user))
    except ServiceError as error:
        log.info("a trigger refused a password reset", user=user_id, error=error.message)
        return True
    return False


def _failure(address: str, purpose: str, token: str) -> str | None:
    """Send the email; return the kind of error that prevented it.

    The error isn't passed on, since Celery would log its text and its trace.
    """
    try:
        messages.send(purpose, address, token)
    except Exception as error:  # mail backends raise what they like
        return type(error).__name__
    return None
