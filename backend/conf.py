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
    # As backend.former_keys reads them
    "FORMER_KEYS": {},
    "MASTER_KEY_IPS": ("0.0.0.0/0", "::/0"),
    "TRUSTED_PROXIES": (),
    # The HTTP face
    "MOUNT_PATH": "/api",
    "PUBLIC_URL": "http://localhost:8000",
    "PARSE_HEADERS": True,
    "API_DOCS": True,
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
    # As backend.limit_rules reads it
    "RATE_LIMITS": "defaults",
    "ENFORCE_PRIVATE_USERS": True,
    # Sessions, in seconds
    "SESSION_LENGTH": 31_536_000,
    "EXPIRE_INACTIVE_SESSIONS": True,
    "EXTEND_SESSION_ON_USE": False,
    "REVOKE_SESSIONS_ON_PASSWORD_CHANGE": True,
    # Passwords
    "PASSWORD_PATTERN": "",
    "PASSWORD_MESSAGE": "Password does not meet the Password Policy requirements.",
    "PASSWORD_NOT_USERNAME": False,
    "PASSWORD_HISTORY": 0,
    "PASSWORD_MAX_AGE": 0,  # days
    "LOCKOUT_THRESHOLD": 0,
    "LOCKOUT_DURATION": 15,  # minutes
    # E-mail addresses; times in seconds
    "APP_NAME": "localhost",
    "VERIFY_EMAIL": False,
    "SEND_VERIFICATION_EMAIL": True,
    "PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL": False,
    "PREVENT_SIGNUP_WITH_UNVERIFIED_EMAIL": False,
    "EMAIL_TOKEN_VALIDITY": 604_800,
    "RESET_TOKEN_VALIDITY": 3600,
    "RESET_SUCCESS_ON_UNKNOWN_EMAIL": True,
    "UNLOCK_ON_PASSWORD_RESET": True,
    # Files
    "FILE_UPLOAD_PUBLIC": False,
    "FILE_UPLOAD_ANONYMOUS": False,
    "FILE_UPLOAD_AUTHENTICATED": True,
    "FILE_EXTENSIONS_ALLOWED": (),
    "FILE_EXTENSIONS_DENIED": (
        *("html", "htm", "shtml", "shtm", "xhtml", "xhtm", "xht", "mhtml", "mht", "hta", "htc"),
        *("svg", "svgz", "xml", "xsl", "xslt", "xsd", "dtd", "rng", "rdf", "owl", "mathml", "mml"),
        *("atom", "rss", "xul", "xbl"),
    ),
    "FILE_URL_VALIDITY": 3600,
    "FILE_URL_DOMAINS": (),
    "FILE_CLEAN_UP": False,
    # Analytics: days, and how many events at most
    "EVENT_RETENTION": 90,
    "EVENT_LIMIT": 1_000_000,
    # Requests that are sent again, in seconds
    "IDEMPOTENCY": "replay",
    "IDEMPOTENCY_PATHS": (".*",),
    "IDEMPOTENCY_TTL": 86_400,
    # Server functions: modules with functions, triggers and jobs; the time for a call, in seconds
    "CLOUD_MODULES": (),
    "FUNCTION_TIME_LIMIT": 30.0,
    # Webhooks: what they are proven with, seconds for a call, networks of our own that may be
    # called, days that deliveries are kept
    "WEBHOOK_KEY": "",
    "WEBHOOK_SECRET": "",
    "WEBHOOK_TIMEOUT": 10,
    "WEBHOOK_ALLOW_PRIVATE": (),
    "WEBHOOK_RETENTION": 7,
    # Jobs: seconds a run may take, seconds between signs of life, days that runs are kept
    "JOB_TIME_LIMIT": 3600,
    "JOB_HEARTBEAT": 10,
    "JOB_STATUS_KEEP": 30,
    # The database, in milliseconds
    "STATEMENT_TIMEOUT": 30_000,
    "LOCK_TIMEOUT": 5_000,
    "SLOW_QUERY": 500,
}


class ServiceSettings:
    """Attributes are the names in ``DEFAULTS``."""

    APP_ID: str
    REST_API_KEY: str
    JAVASCRIPT_KEY: str
    CLIENT_KEY: str
    MASTER_KEY: str
    READ_ONLY_MASTER_KEY: str
    FORMER_KEYS: Mapping[str, Any]
    MASTER_KEY_IPS: tuple[str, ...]
    TRUSTED_PROXIES: tuple[str, ...]
    MOUNT_PATH: str
    PUBLIC_URL: str
    PARSE_HEADERS: bool
    API_DOCS: bool
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
    ENFORCE_PRIVATE_USERS: bool
    SESSION_LENGTH: int
    EXPIRE_INACTIVE_SESSIONS: bool
    EXTEND_SESSION_ON_USE: bool
    REVOKE_SESSIONS_ON_PASSWORD_CHANGE: bool
    PASSWORD_PATTERN: str
    PASSWORD_MESSAGE: str
    PASSWORD_NOT_USERNAME: bool
    PASSWORD_HISTORY: int
    PASSWORD_MAX_AGE: int
    LOCKOUT_THRESHOLD: int
    LOCKOUT_DURATION: int
    APP_NAME: str
    VERIFY_EMAIL: bool
    SEND_VERIFICATION_EMAIL: bool
    PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL: bool
    PREVENT_SIGNUP_WITH_UNVERIFIED_EMAIL: bool
    EMAIL_TOKEN_VALIDITY: int
    RESET_TOKEN_VALIDITY: int
    RESET_SUCCESS_ON_UNKNOWN_EMAIL: bool
    UNLOCK_ON_PASSWORD_RESET: bool
    FILE_UPLOAD_PUBLIC: bool
    FILE_UPLOAD_ANONYMOUS: bool
    FILE_UPLOAD_AUTHENTICATED: bool
    FILE_EXTENSIONS_ALLOWED: tuple[str, ...]
    FILE_EXTENSIONS_DENIED: tuple[str, ...]
    FILE_URL_VALIDITY: int
    FILE_URL_DOMAINS: tuple[str, ...]
    FILE_CLEAN_UP: bool
    EVENT_RETENTION: int
    EVENT_LIMIT: int
    IDEMPOTENCY: str
    IDEMPOTENCY_PATHS: tuple[str, ...]
    IDEMPOTENCY_TTL: int
    CLOUD_MODULES: tuple[str, ...]
    FUNCTION_TIME_LIMIT: float
    WEBHOOK_KEY: str
    WEBHOOK_SECRET: str
    WEBHOOK_TIMEOUT: int
    WEBHOOK_ALLOW_PRIVATE: tuple[str, ...]
    WEBHOOK_RETENTION: int
    JOB_TIME_LIMIT: int
    JOB_HEARTBEAT: int
    JOB_STATUS_KEEP: int
    STATEMENT_TIMEOUT: int
    LOCK_TIMEOUT: int
    SLOW_QUERY: int

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
