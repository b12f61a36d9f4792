"""The second factor of staff: an authenticator app, passkeys, and recovery codes for both.

The parts are those of users (``objects.users``) with tables of their own. Each change is logged,
and is part of the staff user's history in the admin.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction

from backend.kernel.errors import InvalidSecondFactor, OperationForbidden
from backend.kernel.json_types import Json
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.staff.models import StaffPasskey, StaffRecoveryCode, StaffSecondFactor
from objects.users.accounts.second_factor import SecondFactors
from objects.users.passkeys.ceremonies import NewPasskey
from objects.users.passkeys.keys import Passkeys

NUMBER_OF_CODES: Final = 8
_APPS: Final = SecondFactors(
    StaffSecondFactor, StaffRecoveryCode, number_of_codes=NUMBER_OF_CODES, name="staff guesses"
)
PASSKEYS: Final = Passkeys(StaffPasskey)

_log = get_logger("admin")


@dataclass(frozen=True, slots=True)
class Standing:
    """What a staff user has set up. ``app_since`` is None without an authenticator app."""

    app_since: datetime | None
    passkeys: list[dict[str, Json]]
    recovery_codes: int

    @property
    def is_set_up(self) -> bool:
        return self.app_since is not None or bool(self.passkeys)


def is_off() -> bool:
    """Whether the second factor is switched off for all staff."""
    return service_settings.STAFF_SECOND_FACTOR == "off"


def is_required() -> bool:
    """Whether all staff need one."""
    return service_settings.STAFF_SECOND_FACTOR == "required"


def since(user_id: int) -> datetime | None:
    """Return when the oldest second factor of a staff user was set up; None without any."""
    apps = StaffSecondFactor.objects.filter(user_id=user_id).values_list("created_at")
    passkeys = StaffPasskey.objects.filter(user_id=user_id).values_list("created_at")
    return min((row[0] for row in apps.union(passkeys, all=True)), default=None)


def standing(user: User) -> Standing:
    """Return what a staff user has set up."""
    app = StaffSecondFactor.objects.filter(user_id=user.pk).first()
    return Standing(
        None if app is None else app.created_at,
        PASSKEYS.shown(str(user.pk)),
        StaffRecoveryCode.objects.filter(user_id=user.pk).count(),
    )


def check(user: User, code: str) -> None:
    """Use a code of the app or a recovery code.

    Raises ``InvalidSecondFactor``; for every code of the app after ten wrong ones in an hour.
    """
    _APPS.check(str(user.pk), code)


def set_up_app(user: User, secret: str, code: str, *, seen: datetime | None) -> list[str]:
    """Take an authenticator app in place of a former one; return new recovery codes.

    ``seen`` is what ``since`` returned when the caller was admitted. Raises ``InvalidSecondFactor``
    unless it is the secret's code, and if a second factor was set up meanwhile.
    """
    with transaction.atomic():
        _lock_unchanged(user, seen)
        codes = _APPS.set_up(str(user.pk), {"secret": secret, "token": code}, is_proven=True)
        _note(user, "set up an authenticator app")
    return codes


def add_passkey(user: User, new: NewPasskey, name: str, *, seen: datetime | None) -> list[str]:
    """Give a staff user a passkey; return recovery codes if it is the first second factor.

    ``seen`` is as for ``set_up_app``. Raises ``InvalidSecondFactor``.
    """
    with transaction.atomic():
        _lock_unchanged(user, seen)
        codes = [] if since(user.pk) else _APPS.renew_codes(str(user.pk))
        PASSKEYS.add(str(user.pk), new, name)
        _note(user, "added a passkey")
    return codes


def remove_app(user: User) -> None:
    """Take the app away. Raises ``OperationForbidden`` for the last factor if one is required."""
    with transaction.atomic():
        _lock(user)
        StaffSecondFactor.objects.filter(user_id=user.pk).delete()
        _after_removal(user, "removed the authenticator app")


def remove_passkey(user: User, credential_id: str) -> None:
    """Take a passkey away. Raises ``OperationForbidden`` for the last factor if one is required."""
    with transaction.atomic():
        _lock(user)
        if PASSKEYS.remove(str(user.pk), credential_id):
            _after_removal(user, "removed a passkey")


def renew_codes(user: User) -> list[str]:
    """Replace the recovery codes, and return the new ones."""
    with transaction.atomic():
        _lock(user)
        codes = _APPS.renew_codes(str(user.pk))
        _note(user, "made new recovery codes")
    return codes


def reset(user: User) -> bool:
    """Take every second factor and recovery code away; return whether there was one."""
    with transaction.atomic():
        _lock(user)
        had_any = since(user.pk) is not None
        PASSKEYS.remove_all(str(user.pk))
        _APPS.remove(str(user.pk))
        _note(user, "reset with reset_staff_second_factor")
    return had_any


def _after_removal(user: User, change: str) -> None:
    if since(user.pk) is None:
        if is_required():
            raise OperationForbidden("It is your only second factor. Set up another one first.")
        StaffRecoveryCode.objects.filter(user_id=user.pk).delete()
    _note(user, change)


def _lock(user: User) -> None:
    get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)


def _lock_unchanged(user: User, seen: datetime | None) -> None:
    """Lock a staff user whose second factors are those for which a request was admitted."""
    _lock(user)
    if since(user.pk) != seen:
        raise InvalidSecondFactor("The second factor was changed meanwhile. Log in again.")


def _note(user: User, change: str) -> None:
    _log.info("staff second factor", staff=user.get_username(), change=change)
    LogEntry.objects.log_actions(
        user.pk, [user], CHANGE, f"Second factor: {change}.", single_object=True
    )
