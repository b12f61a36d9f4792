"""The environment, as Django settings.

Names are the environment's; what a value may be is said where it is read. Sources, in this order:
the environment, ``.env`` beside ``manage.py`` (or ``ENV_FILE``), and the keys that the first run
kept in ``DATA_DIR``. Our own knobs go to ``SERVICE`` and are read through
``backend.settings.conf``.
"""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from backend.instance.folder import DataFolder
from backend.settings import (
    addresses,
    admin,
    chain,
    environment,
    features,
    files,
    former_keys,
    indexes,
    jobs,
    mail,
    metrics,
    providers,
    realtime,
    requests,
    signers,
    users,
    wallets,
    webhooks,
)
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting
from backend.settings.rate_limits import read as read_rate_limits

BASE_DIR = Path(__file__).resolve().parents[2]
environment.read_file(environment.env_file(BASE_DIR / ".env"))
# Which of the processes this is. It decides about timeouts and names the database connections.
PROCESS = environment.choice(
    "PROCESS",
    "manage",
    ("web", "realtime", "worker", "jobs", "chain", "backfill", "beat", "manage", "test"),
)
DATA_DIR = BASE_DIR / (environment.text("DATA_DIR") or ".data")
DATA_FOLDER = DataFolder(DATA_DIR)
environment.read_file(DATA_FOLDER.keys)

# -- Keys ---------------------------------------------------------------------------------------

_MADE = (
    f"script/server makes it at its first start and stores it in DATA_DIR ({DATA_DIR}), which has"
    " none. Correct DATA_DIR, or set the key in the environment."
)
SECRET_KEY = environment.required("SECRET_KEY", _MADE)
SECRET_KEY_FALLBACKS = environment.words("SECRET_KEY_FALLBACKS")
_service: dict[str, object] = {
    name: environment.required(name, _MADE) for name in ("APP_ID", "REST_API_KEY", "MASTER_KEY")
}
for _name in ("JAVASCRIPT_KEY", "CLIENT_KEY", "READ_ONLY_MASTER_KEY"):
    _service[_name] = environment.text(_name)
try:
    _service["FORMER_KEYS"] = former_keys.read(environment.words("FORMER_KEYS"))
except ValueError as _error:
    raise BadSetting(f"FORMER_KEYS{_error}.") from None


def _networks(name: str) -> tuple[str, ...]:
    found = environment.words(name, DEFAULTS[name])
    for item in found:
        try:
            ipaddress.ip_network(item, strict=False)
        except ValueError:
            raise BadSetting(f"{name} must list IP addresses or networks, not {item!r}.") from None
    return tuple(found)


_service["MASTER_KEY_IPS"] = _networks("MASTER_KEY_IPS")
_service["TRUSTED_PROXIES"] = _networks("TRUSTED_PROXIES")

# -- The HTTP face ------------------------------------------------------------------------------

_LOCAL = ("localhost", "127.0.0.1", "::1")
DEBUG = environment.flag("DEBUG", False)
# Whole tracebacks in the messages about modules of CLOUD_MODULES that can't be loaded.
START_DEBUG = environment.flag("START_DEBUG", False)
LISTEN_HOST = environment.text("LISTEN_HOST", "127.0.0.1")
PORT = environment.whole("PORT", 8000, least=1, most=65535)
SITE_URL = environment.site_url("SITE_ADDRESS")
PUBLIC_URL = environment.address(
    "PUBLIC_URL", SITE_URL or f"http://localhost:{PORT}", ("http", "https")
)
PUBLIC_URL = PUBLIC_URL.rstrip("/")
_public_host = urlsplit(PUBLIC_URL).hostname or "localhost"
_SHORTEST_KEY = 12  # characters
for _name, _value in (("SECRET_KEY", SECRET_KEY), ("MASTER_KEY", str(_service["MASTER_KEY"]))):
    if _public_host not in _LOCAL and len(_value) < _SHORTEST_KEY:
        raise BadSetting(
            f"{_name} has fewer than {_SHORTEST_KEY} characters, which can be guessed, and"
            " PUBLIC_URL isn't on this machine: set a longer one."
        )
ALLOWED_HOSTS = environment.words(
    "ALLOWED_HOSTS", dict.fromkeys((_public_host, "localhost", "127.0.0.1", "[::1]"))
)
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
# Only the proxy reaches the web process, and the proxy sets this header itself.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https:")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Where script/server has its processes listen; without a proxy, on the public port themselves.
SOCKETS_FOLDER = environment.text("SOCKETS_FOLDER")
_web, _realtime, _handoff = ["127.0.0.1:8001"], "127.0.0.1:8002", ""
if SOCKETS_FOLDER:
    _web = [f"unix:{SOCKETS_FOLDER}/web.sock"]
    _realtime = f"unix:{SOCKETS_FOLDER}/realtime.sock"
    _handoff = f"{SOCKETS_FOLDER}/handoff.sock"
    if not environment.text("SITE_ADDRESS"):
        _web.append(f"[{LISTEN_HOST}]:{PORT}" if ":" in LISTEN_HOST else f"{LISTEN_HOST}:{PORT}")
WEB_BIND = environment.binds("WEB_BIND", _web)
REALTIME_BIND = environment.bind("REALTIME_BIND", _realtime)
# The Unix socket by which web processes pass on the handshakes of WebSockets.
REALTIME_HANDOFF = environment.text("REALTIME_HANDOFF", _handoff)
# How many processes script/server starts: small has one for all background work.
PROFILE = environment.choice("PROFILE", "default", ("default", "small"))
_workers = 1 if PROFILE == "small" else min(os.cpu_count() or 1, 4)
WEB_WORKERS = environment.whole("WEB_WORKERS", _workers, least=1, most=512)
WEB_THREADS = environment.whole("WEB_THREADS", 4, least=1, most=512)
REALTIME_WORKERS = environment.whole("REALTIME_WORKERS", 1, least=1, most=64)

_mount = environment.text("MOUNT_PATH", "/api").rstrip("/")
_taken = ("admin", "static", "health", "ready", "metrics", "ws", "livequery")
_segments = _mount.split("/")[1:]
if (
    not re.fullmatch(r"(/[A-Za-z0-9_.~-]+)+", _mount)
    or _segments[0] in _taken
    or not {".", ".."}.isdisjoint(_segments)
):
    raise BadSetting("MOUNT_PATH must be a path such as /api, and not the admin's, /health or /ws.")

_service |= {
    "MOUNT_PATH": _mount,
    "PUBLIC_URL": PUBLIC_URL,
    "PARSE_HEADERS": environment.flag("PARSE_HEADERS", True),
    "API_DOCS": environment.flag("API_DOCS", True),
    "ALLOW_CLIENT_CLASS_CREATION": environment.flag("ALLOW_CLIENT_CLASS_CREATION", False),
    "CLASS_PERMISSIONS_DEFAULT": environment.choice(
        "CLASS_PERMISSIONS_DEFAULT", "open", ("open", "authenticated", "closed")
    ),
    "ALLOW_CUSTOM_OBJECT_ID": environment.flag("ALLOW_CUSTOM_OBJECT_ID", False),
    "ALLOW_ANONYMOUS_USERS": environment.flag("ALLOW_ANONYMOUS_USERS", False),
    "AUTH_ADAPTERS": providers.read(),
}
_service |= files.service_values(PUBLIC_URL)
_service |= mail.service_values(PUBLIC_URL)
_service |= requests.service_values()
_service |= users.service_values()
for _name in (
    "MAX_BODY_SIZE",
    "MAX_CLIENT_BODY_SIZE",
    "MAX_UPLOAD_SIZE",
    "HTTP_MAX_CONNECTIONS",
    "HTTP_MAX_PER_ADDRESS",
    "HTTP_HEAD_TIMEOUT",
    "HTTP_IDLE_TIMEOUT",
    "HTTP_MIN_RATE",
    "DEFAULT_LIMIT",
    "MAX_LIMIT",
    "BATCH_LIMIT",
    "INCLUDE_DEPTH",
    "INCLUDE_COUNT",
    "STATEMENT_TIMEOUT",
    "CLIENT_STATEMENT_TIMEOUT",
    "LOCK_TIMEOUT",
    "SLOW_QUERY",
):
    _may_be_off = _name in ("STATEMENT_TIMEOUT", "LOCK_TIMEOUT", "SLOW_QUERY", "HTTP_MIN_RATE")
    _least = 0 if _may_be_off else 1
    _service[_name] = environment.whole(_name, DEFAULTS[_name], least=_least)

# Two of the largest objects (backend.kernel.result_memory): a page of an export has one or more.
_service["MAX_RESPONSE_SIZE"] = environment.whole(
    "MAX_RESPONSE_SIZE", DEFAULTS["MAX_RESPONSE_SIZE"], least=32 * 1024 * 1024
)
_service["CLIENT_SLOW_REQUESTS"] = environment.whole(
    "CLIENT_SLOW_REQUESTS", max(1, WEB_THREADS // 2), most=512
)

_service["CLIENT_FIELD_LIMIT"] = environment.whole("CLIENT_FIELD_LIMIT", 300, most=2000)
_service["RATE_LIMITS"] = environment.text("RATE_LIMITS") or DEFAULTS["RATE_LIMITS"]
try:
    read_rate_limits(_service["RATE_LIMITS"])
except ValueError as _error:
    raise BadSetting(f"RATE_LIMITS{'' if str(_error).startswith('[') else ' '}{_error}.") from None
for _name in (
    "ENFORCE_PRIVATE_USERS",
    "EXPIRE_INACTIVE_SESSIONS",
    "EXTEND_SESSION_ON_USE",
    "REVOKE_SESSIONS_ON_PASSWORD_CHANGE",
    "PASSWORD_NOT_USERNAME",
):
    _service[_name] = environment.flag(_name, DEFAULTS[_name])
_service["SESSION_LENGTH"] = environment.whole("SESSION_LENGTH", 31_536_000, least=60)
_service["PASSWORD_HISTORY"] = environment.whole("PASSWORD_HISTORY", 0, most=20)
_service["PASSWORD_MAX_AGE"] = environment.whole("PASSWORD_MAX_AGE", 0, most=36_500)
_service["LOCKOUT_THRESHOLD"] = environment.whole("LOCKOUT_THRESHOLD", 0, most=999)
_service["LOCKOUT_DURATION"] = environment.whole("LOCKOUT_DURATION", 15, least=1, most=99_999)
_service["PASSWORD_PATTERN"] = environment.pattern("PASSWORD_PATTERN")
_service["PASSWORD_MESSAGE"] = environment.text("PASSWORD_MESSAGE", DEFAULTS["PASSWORD_MESSAGE"])
_service["CLOUD_MODULES"] = environment.words("CLOUD_MODULES")
_service["FUNCTION_TIME_LIMIT"] = environment.whole("FUNCTION_TIME_LIMIT", 30, most=3600)
_service |= jobs.service_values()
_service |= indexes.service_values()
_service |= realtime.service_values()
_service |= chain.service_values()
_service |= signers.service_values()
_service |= wallets.service_values()
_service |= webhooks.service_values()
_service["WEBHOOK_ALLOW_PRIVATE"] = _networks("WEBHOOK_ALLOW_PRIVATE")
_service |= metrics.service_values(_networks("METRICS_NETWORKS"))
SERVICE = _service
# What the environment says of feature flags, by its names: on or not, and a percentage or None.
FEATURE_OVERRIDES = features.overrides()
# Megabytes of memory that a process of web, realtime or worker may hold; 0 is no limit.
MEMORY_LIMIT = environment.whole("MEMORY_LIMIT", 2048)

ROOT_URLCONF = "backend.urls"
WSGI_APPLICATION = "backend.wsgi.application"
ASGI_APPLICATION = "backend.asgi.application"
APPEND_SLASH = True

CORS_ALLOW_ALL_ORIGINS = True
CORS_URLS_REGEX = rf"^({_mount}/|/health$)"
_HEADERS = (
    "Application-Id REST-API-Key JavaScript-Key Client-Key Master-Key Session-Token "
    "Installation-Id Client-Version Revocable-Session Request-Id Cloud-Context "
    "File-Metadata File-Tags File-ACL File-Max-Upload-Size Upload-Mode"
)
CORS_ALLOW_HEADERS = [
    "accept",
    "authorization",
    "content-type",
    "x-request-id",
    "x-requested-with",
    *(f"{prefix}-{name.lower()}" for prefix in ("x-svc", "x-parse") for name in _HEADERS.split()),
]
CORS_EXPOSE_HEADERS = [
    "location",
    "x-request-id",
    "retry-after",
    "x-svc-mode",
    "idempotent-replayed",
    # Parse's JavaScript SDK looks for it in this spelling.
    "X-Svc-Job-Status-Id",
    "X-Parse-Job-Status-Id",
    *(f"ratelimit-{name}" for name in ("limit", "remaining", "reset")),
]
CORS_ALLOW_METHODS = ["GET", "POST", "PUT", "DELETE", "OPTIONS"]
CORS_PREFLIGHT_MAX_AGE = 86400

# -- PostgreSQL and Redis -----------------------------------------------------------------------

DATABASE_URL = environment.address("DATABASE_URL", "", ("postgres", "postgresql"))
REDIS_URL = environment.address("REDIS_URL", "", ("redis", "rediss", "unix"))
EMBEDDED_POSTGRES = not DATABASE_URL
EMBEDDED_REDIS = not REDIS_URL
DATABASE_URL = addresses.with_password(
    DATABASE_URL, "DATABASE_URL", environment.text("DATABASE_PASSWORD")
)
REDIS_URL = addresses.with_password(REDIS_URL, "REDIS_URL", environment.text("REDIS_PASSWORD"))
DATABASE_URL = DATABASE_URL or DATA_FOLDER.database_url
REDIS_URL = REDIS_URL or DATA_FOLDER.redis_url

_IDLE_TRANSACTION_TIMEOUT = environment.whole("IDLE_TRANSACTION_TIMEOUT", 60_000)


def database(process: str) -> dict[str, Any]:
    """The entry of ``DATABASES`` for a process of this name."""
    # Commands may take as long as they need: migrations, imports, indexes.
    is_command = process == "manage"
    session = {
        "statement_timeout": 0 if is_command else _service["STATEMENT_TIMEOUT"],
        "lock_timeout": 0 if is_command else _service["LOCK_TIMEOUT"],
        # Compiling a query of milliseconds takes longer than running it.
        "jit": "off",
        "idle_in_transaction_session_timeout": _IDLE_TRANSACTION_TIMEOUT,
    }
    return addresses.django_database(DATABASE_URL, session, f"backend {process}") | {
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }


DATABASES = {"default": database(PROCESS)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "cache",
    }
}

STORAGES = {
    "files": files.storage(DATA_DIR),
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# -- Mail ---------------------------------------------------------------------------------------

globals().update(mail.django_values(str(_service["APP_NAME"]), PUBLIC_URL))

# -- Background work ----------------------------------------------------------------------------

CELERY_BROKER_URL = addresses.celery_broker(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"global_keyprefix": "celery:", "visibility_timeout": 3600}
CELERY_BEAT_SCHEDULER = "backend.tasks.scheduler:Scheduler"
CELERY_TIMEZONE = "UTC"
CELERY_TASK_ROUTES = jobs.ROUTES | indexes.ROUTES | chain.ROUTES
# Networks that can be waited for at the same moment, and backfills that run at once.
CHAIN_CONCURRENCY = environment.whole("CHAIN_CONCURRENCY", 16, least=1, most=512)
BACKFILL_CONCURRENCY = environment.whole("BACKFILL_CONCURRENCY", 1, least=1, most=64)
JOB_CONCURRENCY = environment.whole("JOB_CONCURRENCY", 2, least=1, most=512)
CELERY_WORKER_CONCURRENCY = environment.whole("WORKER_CONCURRENCY", 2, least=1, most=512)
CELERY_BEAT_SCHEDULE = {
    "beat-is-alive": {
        "task": "backend.beat_is_alive",
        "schedule": 15.0,
        "options": {"expires": 15.0},
    },
    "remove-expired": {
        "task": "objects.remove_expired",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
}
CELERY_BEAT_SCHEDULE |= webhooks.SCHEDULE
CELERY_BEAT_SCHEDULE |= indexes.SCHEDULE
CELERY_BEAT_SCHEDULE |= chain.beat_schedule()
CELERY_BEAT_SCHEDULE |= jobs.beat_schedule(_service["JOB_HEARTBEAT"])
if _service["FILE_CLEAN_UP"]:
    CELERY_BEAT_SCHEDULE["clean-files"] = {
        "task": "objects.clean_files",
        "schedule": 86400.0,
        "options": {"expires": 43200.0},
    }

# -- Applications -------------------------------------------------------------------------------

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "backend.site.config.OwnAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "channels",
    "corsheaders",
    "django_celery_beat",
    "drf_spectacular_sidecar",
    "backend",
    "objects",
    # Before functions, whose modules declare triggers: the classes say which they can't have.
    "chain",
    "functions",
    "realtime",
]

MIDDLEWARE = [
    "backend.http.context.RequestContext",
    # Answers everything below MOUNT_PATH, CORS included; what follows serves the admin.
    "backend.http.edge.ApiEdge",
    "backend.endpoints.middleware.ConnectionUpkeep",
    "backend.endpoints.middleware.Probes",
    "backend.endpoints.middleware.PagePolicy",
    "backend.endpoints.middleware.StaffLogIn",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Before the applications': the admin's frame takes the place of unfold's.
        "DIRS": [*mail.template_folders(BASE_DIR), BASE_DIR / "backend" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

PASSWORD_HASHERS = [
    "objects.users.accounts.hashers.Argon2",
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]

# -- The admin ----------------------------------------------------------------------------------

ENVIRONMENT = admin.environment_name(PUBLIC_URL)
UNFOLD = admin.unfold(str(_service["APP_NAME"]))
# Forms hold whole objects, with inputs for every field.
DATA_UPLOAD_MAX_MEMORY_SIZE = _service["MAX_BODY_SIZE"]
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
FORMAT_MODULE_PATH = ["backend.settings.formats"]

# -- Static files: the admin's, served by WhiteNoise from where their packages keep them ----------

STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_MAX_AGE = 3600

# -- Logs ---------------------------------------------------------------------------------------

LOG_LEVEL = environment.choice(
    "LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
)
# script/server sets the default, since it knows whether a person reads.
LOG_FORMAT = environment.choice(
    "LOG_FORMAT", os.environ.get("DEFAULT_LOG_FORMAT") or "json", ("json", "console")
)
LOGGING_CONFIG = "backend.logs.setup.configure_from"
LOG_KEEP = environment.whole("LOG_KEEP", 20_000, most=1_000_000)
LOGGING = {
    "level": LOG_LEVEL,
    "style": LOG_FORMAT,
    "process": PROCESS,
    "redis_url": REDIS_URL,
    "keep": LOG_KEEP,
}

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")
