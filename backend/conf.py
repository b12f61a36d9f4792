"""The service's own knobs, as one lazy object.

``service_settings.MAX_LIMIT`` reads ``settings.SERVICE["MAX_LIMIT"]``, or the default here, once;
it is read anew after ``override_settings``. A name in ``settings.SERVICE`` that is not known here
is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

DEFAULTS: dict[str, Any] = {
    # Credentials
    "APP_ID": "",
    "REST_API_KEY": "",
    "JAVASCRIPT_KEY": "",
    "CLIENT_KEY": "",
    "MASTER_KEY": "",
    "READ_ONLY_MASTER_KEY": "",
    "MASTER_KEY_IPS": ("0.0.0.0/0", "::/0"),
    "TRUSTED_PROXIES": (),
    # The HTTP face
    "MOUNT_PATH": "/api",
    "PUBLIC_URL": "http://localhost:8000",
    "PARSE_HEADERS": True,
    "MAX_BODY_SIZE": 20 * 1024 * 1024,
    "MAX_UPLOAD_SIZE": 20 * 1024 * 1024,
    # Queries
    "DEFAULT_LIMIT": 100,
    "MAX_LIMIT": 10_000,
    "BATCH_LIMIT": 100,
    "INCLUDE_DEPTH": 10,
    "INCLUDE_COUNT": 100,
    # What clients may do
    "ALLOW_CLIENT_CLASS_CREATION": False,
    "ALLOW_CUSTOM_OBJECT_ID": False,
    "ALLOW_ANONYMOUS_USERS": False,
    # Signing in by other services: the options of each by its name in authData
    "AUTH_ADAPTERS": {},
    # As backend.limits.rules reads it
    "RATE_LIMITS": "defaults",
    # The database, in milliseconds
    "STATEMENT_TIMEOUT": 30_000,
    "LOCK_TIMEOUT": 5_000,
}


class ServiceSettings:
    """Attributes are the names in ``DEFAULTS``."""

    APP_ID: str
    REST_API_KEY: str
    JAVASCRIPT_KEY: str
    CLIENT_KEY: str
    MASTER_KEY: str
    READ_ONLY_MASTER_KEY: str
    MASTER_KEY_IPS: tuple[str, ...]
    TRUSTED_PROXIES: tuple[str, ...]
    MOUNT_PATH: str
    PUBLIC_URL: str
    PARSE_HEADERS: bool
    MAX_BODY_SIZE: int
    MAX_UPLOAD_SIZE: int
    DEFAULT_LIMIT: int
    MAX_LIMIT: int
    BATCH_LIMIT: int
    INCLUDE_DEPTH: int
    INCLUDE_COUNT: int
    ALLOW_CLIENT_CLASS_CREATION: bool
    ALLOW_CUSTOM_OBJECT_ID: bool
    ALLOW_ANONYMOUS_USERS: bool
    AUTH_ADAPTERS: Mapping[str, Any]
    RATE_LIMITS: Any
    STATEMENT_TIMEOUT: int
    LOCK_TIMEOUT: int

    def __getattr__(self, name: str) -> Any:
        if name not in DEFAULTS:
            raise AttributeError(f"There is no service setting {name!r}.")
        given = getattr(settings, "SERVICE", {})
        unknown = given.keys() - DEFAULTS.keys()
        if unknown:
            raise ImproperlyConfigured(f"Unknown in settings.SERVICE: {', '.join(sorted(unknown))}")
        value = given.get(name, DEFAULTS[name])
        # Found without this method from now on.
        self.__dict__[name] = value
        return value

    def reload(self) -> None:
        """Forget what was read."""
        self.__dict__.clear()


service_settings = ServiceSettings()


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "SERVICE":
        service_settings.reload()


setting_changed.connect(_forget)
