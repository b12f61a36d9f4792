"""Storage quotas: how many bytes of stored files an account may have.

Each file's row names the account that it is charged to: the uploading user, ``PUBLIC`` for uploads
without a user (they share one quota), or none for the master key. The statement that adds or
removes the row also updates the account's sum, so concurrent uploads can't use the same room, and
the sum always matches the rows if a process dies. ``service.remove_unfinished`` removes the rows of
interrupted uploads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from backend.kernel.errors import FileSaveFailed
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from objects.database.orm import orm_queries
from objects.files import records
from objects.files.models import FileQuota
from objects.files.records import FileRecord

PUBLIC: Final = "*"
"""The account of uploads without a user."""

MOST: Final = 2**53
"""The largest quota, in bytes."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes that an account has stored and may store; ``allowed`` is 0 for no limit.

    ``is_own`` is True for a quota set for this user, False for the default.
    """

    used: int
    allowed: int
    is_own: bool

    @property
    def is_used_up(self) -> bool:
        return 0 < self.allowed <= self.used


def account_of(principal: Principal) -> str | None:
    """Return the account that an upload is charged to; None for the master key: no quota."""
    if principal.is_master:
        return None
    return principal.user_id or PUBLIC


def usage_of(account: str) -> Usage:
    """Return the bytes that an account has stored and may store."""
    allowed, is_own = _allowed(account)
    return Usage(records.stored_bytes(account), allowed, is_own)


def check_room(principal: Principal) -> None:
    """Raise ``FileSaveFailed`` if the caller's quota is used up, before the upload is received."""
    account = account_of(principal)
    if account is None or not _allowed(account)[0]:
        return
    usage = usage_of(account)
    if usage.is_used_up:
        raise _refusal(usage.allowed)


def add(record: FileRecord) -> None:
    """Add the row of a new file. Raises ``FileSaveFailed`` if its account's quota has no room."""
    allowed = 0 if record.charged_to is None else _allowed(record.charged_to)[0]
    if not records.add(record, allowed):
        raise _refusal(allowed)


def set_quota(user_id: str, quota: int | None) -> None:
    """Set a user's quota in bytes: 0 for no limit, None for the default."""
    if quota is None:
        FileQuota.objects.filter(user_id=user_id).delete()
    else:
        FileQuota.objects.update_or_create(user_id=user_id, defaults={"quota": quota})


def _allowed(account: str) -> tuple[int, bool]:
    if account == PUBLIC:
        return service_settings.FILE_QUOTA_PUBLIC, False
    with orm_queries():
        quotas = FileQuota.objects.filter(user_id=account)
        quota = quotas.values_list("quota", flat=True).first()
    return (service_settings.FILE_QUOTA, False) if quota is None else (quota, True)


def _refusal(allowed: int) -> FileSaveFailed:
    return FileSaveFailed(f"The storage quota of {allowed} bytes has no room for this file.")
