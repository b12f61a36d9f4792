"""Rows that nothing can use any more: sessions, mailed tokens and challenges that have expired."""

from __future__ import annotations

from django.db.models.functions import Now

from backend.settings.conf import service_settings
from objects.database.orm import delete_in_batches
from objects.users.models import MailToken
from objects.users.passkeys.models import PasskeyChallenge
from objects.users.sessions import tokens

_AT_ONCE = 1000


def remove_expired() -> int:
    """Remove what has expired; how many rows that were. It may run twice at once."""
    expired = [
        MailToken.objects.filter(expires_at__lt=Now()),
        PasskeyChallenge.objects.filter(expires_at__lt=Now()),
    ]
    removed = sum(delete_in_batches(rows, _AT_ONCE) for rows in expired)
    if service_settings.EXPIRE_INACTIVE_SESSIONS:
        removed += _remove_sessions()
    return removed


def _remove_sessions() -> int:
    removed = 0
    while True:
        count = tokens.remove_expired(_AT_ONCE)
        removed += count
        if count < _AT_ONCE:
            return removed
