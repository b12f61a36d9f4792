"""What a mailed link is good for.

The token in the link is the proof; no session or cookie takes part.
"""

from __future__ import annotations

from backend.kernel.principal import MASTER
from backend.settings.conf import service_settings
from objects import service
from objects.core.names import USER, ObjectId
from objects.database import maintenance
from objects.users.accounts import passwords
from objects.users.email import tokens
from objects.users.email.tokens import RESET, VERIFY, Holder, holder_of

__all__ = ["Holder", "account_of_reset", "account_of_verification", "set_password", "verify_email"]


def account_of_verification(token: object) -> Holder:
    """Whose address a link verifies; it stays good. Raises ``InvalidLink``."""
    return holder_of(token, VERIFY)


def account_of_reset(token: object) -> Holder:
    """Whose password a link sets; it stays good. Raises ``InvalidLink``."""
    return holder_of(token, RESET)


def verify_email(token: object) -> None:
    """Use a link up: its user has the address. Raises ``InvalidLink``, ``UnderMaintenance``."""
    with maintenance.writing():
        holder = tokens.use(token, VERIFY)
        service.update(MASTER, USER, ObjectId(holder.user_id), {"emailVerified": True})


def set_password(token: object, password: object) -> None:
    """Use a link up: its user has this password, and every other link is worthless.

    Raises ``InvalidLink``, and ``PasswordMissing`` or ``ValidationFailed`` for a password that
    isn't allowed, or ``UnderMaintenance``; the link stays good then.
    """
    maintenance.check()
    # Not checked without a link: passwords are slow to encode.
    holder_of(token, RESET)
    checked = passwords.check_form(password)
    with maintenance.writing():
        holder = tokens.use(token, RESET)
        changes: dict[str, bool | str] = {"password": checked}
        if service_settings.VERIFY_EMAIL and holder.by_email:
            # The link proves access to the address's mailbox.
            changes["emailVerified"] = True
        service.update(MASTER, USER, ObjectId(holder.user_id), changes)
        tokens.forget(holder.user_id)
        if service_settings.UNLOCK_ON_PASSWORD_RESET:
            passwords.forget_guesses(holder.user_id)
