"""The service's own settings, as one lazy object.

``service_settings.MAX_LIMIT`` reads ``settings.SERVICE["MAX_LIMIT"]``, or the default of the
declaration, once; it is read again after ``override_settings``. A name in ``settings.SERVICE``
that isn't declared is an error.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from backend.settings.areas.chain import Chain
from backend.settings.areas.files import Backups, Files
from backend.settings.areas.functions import Functions
from backend.settings.areas.http import Http, Metrics
from backend.settings.areas.keys import Keys
from backend.settings.areas.limits import Limits
from backend.settings.areas.mail import Mail
from backend.settings.areas.passkeys import Passkeys
from backend.settings.areas.processes import Database
from backend.settings.areas.push import Push
from backend.settings.areas.sign_in import SignIn
from backend.settings.areas.sockets import Sockets
from backend.settings.areas.staff import Staff
from backend.settings.areas.users import Users
from backend.settings.declaration import Area, Setting

_T = TypeVar("_T")


class ServiceSettings(
    Keys,
    Http,
    Metrics,
    Limits,
    Functions,
    Chain,
    Passkeys,
    Users,
    Staff,
    Mail,
    Push,
    SignIn,
    Files,
    Backups,
    Sockets,
    Database,
):
    """The settings of ``settings.SERVICE``. Each is declared in its area."""

    @classmethod
    def settings(cls) -> dict[str, Setting[Any]]:
        """Return the declarations of all areas."""
        return {name: setting for area in AREAS for name, setting in area.settings().items()}

    @classmethod
    def read(cls) -> dict[str, Any]:
        """Return the values of all areas from the environment. Raises ``BadSetting``."""
        return {name: value for area in AREAS for name, value in area.read().items()}

    def value_of(self, setting: Setting[_T]) -> _T:
        """Return the value in ``settings.SERVICE``, or the default."""
        values: dict[str, Any] = getattr(settings, "SERVICE", {})
        unknown = values.keys() - DEFAULTS.keys()
        if unknown:
            raise ImproperlyConfigured(f"Unknown in settings.SERVICE: {', '.join(sorted(unknown))}")
        value: _T = values.get(setting.name, setting.default)
        return value

    def reload(self) -> None:
        """Forget the values that were read."""
        self.__dict__.clear()


AREAS: tuple[type[Area], ...] = ServiceSettings.__bases__
DEFAULTS: dict[str, Any] = {
    name: setting.default for name, setting in ServiceSettings.settings().items()
}
service_settings = ServiceSettings()


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "SERVICE":
        service_settings.reload()


setting_changed.connect(_forget)
