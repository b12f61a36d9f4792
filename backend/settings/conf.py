"""The service's own knobs, as one lazy object.

``service_settings.MAX_LIMIT`` reads ``settings.SERVICE["MAX_LIMIT"]``, or the default here, once;
it is read again after ``override_settings``. A name in ``settings.SERVICE`` that is not known here
is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

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
    # As backend.settings.former_keys reads them
    "FORMER_KEYS": {},
    "MASTER_KEY_IPS": ("0.0.0.0/0", "::/0"),
    "TRUSTED_PROXIES": (),
    # The HTTP face
    "MOUNT_PATH": "/api",
    "PUBLIC_URL": "http://localhost:8000",
    "PARSE_HEADERS": True,
    "API_DOCS": True,
    "MAX_BODY_SIZE": 20 * 1024 * 1024,
    "MAX_CLIENT_BODY_SIZE": 1024 * 1024,
    "MAX_RESPONSE_SIZE": 64 * 1024 * 1024,
    "MAX_UPLOAD_SIZE": 20 * 1024 * 1024,
    # Connections of one web process: how many, of all and of one address; seconds; bytes a second
    "HTTP_MAX_CONNECTIONS": 4096,
    "HTTP_MAX_PER_ADDRESS": 512,
    "HTTP_HEAD_TIMEOUT": 10,
    "HTTP_IDLE_TIMEOUT": 75,
    "HTTP_MIN_RATE": 1024,
    # Queries
    "DEFAULT_LIMIT": 100,
    "MAX_LIMIT": 10_000,
    "BATCH_LIMIT": 100,
    "INCLUDE_DEPTH": 10,
    "INCLUDE_COUNT": 100,
    # What clients may do
    "ALLOW_CLIENT_CLASS_CREATION": False,
    # Who may use a new class that comes without permissions: open, authenticated, closed
    "CLASS_PERMISSIONS_DEFAULT": "open",
    "ALLOW_CUSTOM_OBJECT_ID": False,
    "CLIENT_FIELD_LIMIT": 300,
    "ALLOW_ANONYMOUS_USERS": False,
    # Signing in by other services: the options of each by its name in authData
    "AUTH_ADAPTERS": {},
    # As backend.settings.rate_limits reads it
    "RATE_LIMITS": "defaults",
    "ENFORCE_PRIVATE_USERS": True,
    # Fields of _User that only the master key writes, in addition to those of the service
    "MASTER_ONLY_USER_FIELDS": (),
    # By class and group of callers, as in class permissions, which may say otherwise
    "PROTECTED_FIELDS": {"_User": {"*": ("email",)}},
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
    "FILE_HOST": "",
    # Bytes of stored files for each user, and for all uploads of the public together; 0 is no limit
    "FILE_QUOTA": 10 * 1024**3,
    "FILE_QUOTA_PUBLIC": 10 * 1024**3,
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
    # The chain: seconds for one request to a node, blocks that a provider may be behind the others,
    # days that the outbox is kept; endpoints of the service's own by network, each with its weight;
    # see docs/chain.md for the rest
    "RPC_TIMEOUT": 10,
    "RPC_MAX_LAG": 10,
    "VERIFY_PERCENT": 5,
    "RPC_URLS": {},
    "OUTBOX_KEEP": 30,
    "REORG_REOPEN": True,
    "STALLED_REVIVE": False,
    # Sockets, each limit for one process; seconds, bytes; 0 is no limit of connections
    "WS_ALLOWED_ORIGINS": (),
    "WS_REQUIRE_KEY": False,
    "WS_MAX_CONNECTIONS": 20_000,
    "WS_MAX_PER_ADDRESS": 500,
    "WS_PING_INTERVAL": 25,
    "WS_PING_TIMEOUT": 20,
    "WS_MESSAGE_SIZE": 256 * 1024,
    "WS_MESSAGES_PER_MINUTE": 3_000,
    "WS_JUNK_PER_MINUTE": 60,
    "WS_SEND_QUEUE": 1024 * 1024,
    # Live queries: the classes they are for (none: all of them; "none" alone switches them off),
    # how many subscriptions a client may have
    "LIVE_QUERY_CLASSES": (),
    "LIVE_QUERY_MAX_SUBSCRIPTIONS": 1000,
    # /metrics: who may read it, by token or from these networks
    "METRICS": False,
    "METRICS_TOKEN": "",
    "METRICS_NETWORKS": (),
    # Signing and sending, as backend.settings.signers reads it: by network, None for all others;
    # fees in wei for a unit of gas; seconds
    "SIGNER_PRIVATE_KEY": {},
    "SIGNER_KEYSTORE": {},
    "SIGNER_KEYSTORE_PASSWORD": {},
    "SIGNER_URL": {},
    "SIGNER_ADDRESS": {},
    "SIGNER_TIMEOUT": 5,
    "MAX_FEE_GWEI": {None: 300_000_000_000},
    "MAX_PRIORITY_FEE_GWEI": {None: 50_000_000_000},
    "STUCK_AFTER": 120,
    # Passkeys: without a domain and origins, those of PUBLIC_URL; without a name, APP_NAME
    "WEBAUTHN_RP_ID": "",
    "WEBAUTHN_RP_NAME": "",
    "WEBAUTHN_ORIGINS": (),
    "WEBAUTHN_USER_VERIFICATION": "required",
    "WEBAUTHN_ATTESTATION": "none",
    # Wallets: who keeps their keys, on which networks (else those that are there), and the
    # custodian's API
    "WALLET_CUSTODIAN": "local",
    "WALLET_NETWORKS": (),
    "WALLET_API_URL": "",
    "WALLET_API_TOKEN": "",
    "WALLET_API_DELEGATED": False,
    "WALLET_API_KEY": "",
    "WALLET_API_KEY_ID": "",
    # The database, in milliseconds
    "STATEMENT_TIMEOUT": 30_000,
    "CLIENT_STATEMENT_TIMEOUT": 5_000,
    # Slow requests of one address at a time, in each web process; 0 is no limit
    "CLIENT_SLOW_REQUESTS": 2,
    "LOCK_TIMEOUT": 5_000,
    "SLOW_QUERY": 500,
    # Indexes for the queries that classes get: built, suggested, or neither
    "AUTO_INDEX": "on",
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
    MAX_CLIENT_BODY_SIZE: int
    MAX_RESPONSE_SIZE: int
    MAX_UPLOAD_SIZE: int
    HTTP_MAX_CONNECTIONS: int
    HTTP_MAX_PER_ADDRESS: int
    HTTP_HEAD_TIMEOUT: int
    HTTP_IDLE_TIMEOUT: int
    HTTP_MIN_RATE: int
    DEFAULT_LIMIT: int
    MAX_LIMIT: int
    BATCH_LIMIT: int
    INCLUDE_DEPTH: int
    INCLUDE_COUNT: int
    ALLOW_CLIENT_CLASS_CREATION: bool
    CLASS_PERMISSIONS_DEFAULT: Literal["open", "authenticated", "closed"]
    ALLOW_CUSTOM_OBJECT_ID: bool
    CLIENT_FIELD_LIMIT: int
    ALLOW_ANONYMOUS_USERS: bool
    AUTH_ADAPTERS: Mapping[str, Any]
    RATE_LIMITS: Any
    ENFORCE_PRIVATE_USERS: bool
    MASTER_ONLY_USER_FIELDS: tuple[str, ...]
    PROTECTED_FIELDS: Mapping[str, Mapping[str, Sequence[str]]]
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
    FILE_HOST: str
    FILE_QUOTA: int
    FILE_QUOTA_PUBLIC: int
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
    RPC_TIMEOUT: int
    RPC_MAX_LAG: int
    VERIFY_PERCENT: int
    RPC_URLS: Mapping[int, Sequence[tuple[str, int]]]
    OUTBOX_KEEP: int
    REORG_REOPEN: bool
    STALLED_REVIVE: bool
    WS_ALLOWED_ORIGINS: tuple[str, ...]
    WS_REQUIRE_KEY: bool
    WS_MAX_CONNECTIONS: int
    WS_MAX_PER_ADDRESS: int
    WS_PING_INTERVAL: int
    WS_PING_TIMEOUT: int
    WS_MESSAGE_SIZE: int
    WS_MESSAGES_PER_MINUTE: int
    WS_JUNK_PER_MINUTE: int
    WS_SEND_QUEUE: int
    LIVE_QUERY_CLASSES: tuple[str, ...]
    LIVE_QUERY_MAX_SUBSCRIPTIONS: int
    METRICS: bool
    METRICS_TOKEN: str
    METRICS_NETWORKS: tuple[str, ...]
    SIGNER_PRIVATE_KEY: Mapping[int | None, Any]
    SIGNER_KEYSTORE: Mapping[int | None, str]
    SIGNER_KEYSTORE_PASSWORD: Mapping[int | None, Any]
    SIGNER_URL: Mapping[int | None, Any]
    SIGNER_ADDRESS: Mapping[int | None, str]
    SIGNER_TIMEOUT: int
    MAX_FEE_GWEI: Mapping[int | None, int]
    MAX_PRIORITY_FEE_GWEI: Mapping[int | None, int]
    STUCK_AFTER: int
    WEBAUTHN_RP_ID: str
    WEBAUTHN_RP_NAME: str
    WEBAUTHN_ORIGINS: tuple[str, ...]
    WEBAUTHN_USER_VERIFICATION: str
    WEBAUTHN_ATTESTATION: str
    WALLET_CUSTODIAN: str
    WALLET_NETWORKS: tuple[str, ...]
    WALLET_API_URL: str
    WALLET_API_TOKEN: str
    WALLET_API_DELEGATED: bool
    WALLET_API_KEY: str
    WALLET_API_KEY_ID: str
    STATEMENT_TIMEOUT: int
    CLIENT_STATEMENT_TIMEOUT: int
    CLIENT_SLOW_REQUESTS: int
    LOCK_TIMEOUT: int
    SLOW_QUERY: int
    AUTO_INDEX: Literal["on", "suggest", "off"]

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
