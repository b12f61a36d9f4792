"""The environment, as Django settings.

Settings of the environment are declared in ``backend.settings.areas``; those of the service itself
go to ``SERVICE`` and are read through ``backend.settings.conf``. Sources, in this order: the
environment, ``.env`` beside ``manage.py`` (or ``ENV_FILE``), and the keys that the first start
stored in ``DATA_DIR``.
"""

from __future__ import annotations

import os
from typing import Any, Final

from backend.instance.folder import DataFolder
from backend.settings import addresses, admin, environment, schedule
from backend.settings.areas import processes
from backend.settings.areas.files import storage
from backend.settings.areas.functions import feature_overrides
from backend.settings.areas.http import Http, Site
from backend.settings.areas.keys import Secrets
from backend.settings.areas.mail import django_values, template_folders
from backend.settings.areas.processes import Processes, Servers
from backend.settings.conf import ServiceSettings

BASE_DIR = processes.BASE_DIR
environment.read_file(environment.env_file(BASE_DIR / ".env"))
# Which of the processes this is. It decides about timeouts and names the database connections.
PROCESS = Processes.PROCESS.read()
DATA_DIR = processes.data_dir()
DATA_FOLDER = DataFolder(DATA_DIR)
environment.read_file(DATA_FOLDER.keys)

SECRET_KEY = Secrets.SECRET_KEY.read()
SECRET_KEY_FALLBACKS = list(Secrets.SECRET_KEY_FALLBACKS.read())
SERVICE = ServiceSettings.read()
# What the environment sets feature flags to, by its names: on or not, and a percentage or None.
FEATURE_OVERRIDES = feature_overrides()

# -- HTTP ---------------------------------------------------------------------------------------

DEBUG = Processes.DEBUG.read()
START_DEBUG = Processes.START_DEBUG.read()
SITE_URL = environment.site_url("SITE_ADDRESS")
PUBLIC_URL = Http.PUBLIC_URL.read()
ALLOWED_HOSTS = list(Site.ALLOWED_HOSTS.read())
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
# Only the proxy reaches the web process, and the proxy sets this header itself.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https:")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

LISTEN_HOST = Processes.LISTEN_HOST.read()
PORT = Processes.PORT.read()
WEB_BIND = Processes.WEB_BIND.read()
REALTIME_BIND = Processes.REALTIME_BIND.read()
REALTIME_HANDOFF = Processes.REALTIME_HANDOFF.read()
PROFILE = Processes.PROFILE.read()
WEB_WORKERS = Processes.WEB_WORKERS.read()
WEB_THREADS = Processes.WEB_THREADS.read()
REALTIME_WORKERS = Processes.REALTIME_WORKERS.read()
MEMORY_LIMIT = Processes.MEMORY_LIMIT.read()

ROOT_URLCONF = "backend.urls"
WSGI_APPLICATION = "backend.wsgi.application"
# For runserver alone; the realtime process serves backend.asgi.
ASGI_APPLICATION = "backend.development.application"
APPEND_SLASH = True
# Where a login leads whose "next" is on another site.
LOGIN_REDIRECT_URL = "admin:index"

CORS_ALLOW_ALL_ORIGINS = True
CORS_URLS_REGEX = rf"^({SERVICE['MOUNT_PATH']}/|/health$)"
_HEADERS = (
    "Application-Id REST-API-Key JavaScript-Key Client-Key Windows-Key Master-Key Session-Token "
    "Installation-Id Client-Version Revocable-Session Request-Id Cloud-Context "
    "File-Metadata File-Tags File-ACL File-Directory File-Max-Upload-Size Upload-Mode"
)
CORS_ALLOW_HEADERS = [
    "accept",
    "authorization",
    "content-type",
    # Players and viewers of documents read files part by part.
    "range",
    "if-range",
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
    # Parse's JavaScript SDK looks for them in this spelling.
    *(f"X-{prefix}-{kind}-Status-Id" for prefix in ("Svc", "Parse") for kind in ("Job", "Push")),
    *("accept-ranges", "content-disposition", "content-length", "content-range", "etag"),
    *(f"ratelimit-{name}" for name in ("limit", "remaining", "reset")),
]
CORS_ALLOW_METHODS = ["GET", "POST", "PUT", "DELETE", "OPTIONS"]
CORS_PREFLIGHT_MAX_AGE = 86400

# -- PostgreSQL and Redis -----------------------------------------------------------------------

DATABASE_URL = Servers.DATABASE_URL.read()
SQL_CONSOLE_URL = Servers.SQL_CONSOLE_URL.read()
REDIS_URL = Servers.REDIS_URL.read()
EMBEDDED_POSTGRES = not DATABASE_URL
EMBEDDED_REDIS = not REDIS_URL
DATABASE_URL = addresses.with_password(
    DATABASE_URL, "DATABASE_URL", Servers.DATABASE_PASSWORD.read()
)
REDIS_URL = addresses.with_password(REDIS_URL, "REDIS_URL", Servers.REDIS_PASSWORD.read())
DATABASE_URL = DATABASE_URL or DATA_FOLDER.database_url
REDIS_URL = REDIS_URL or DATA_FOLDER.redis_url

_IDLE_TRANSACTION_TIMEOUT: Final = 60_000  # milliseconds


def database(process: str) -> dict[str, Any]:
    """Return the entry of ``DATABASES`` for a process of this name."""
    # Commands may take as long as they need: migrations, imports, indexes.
    is_command = process == "manage"
    session = {
        "statement_timeout": 0 if is_command else SERVICE["STATEMENT_TIMEOUT"],
        "lock_timeout": 0 if is_command else SERVICE["LOCK_TIMEOUT"],
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
        "OPTIONS": {"pool_class": "backend.kernel.connections.redis.Pool"},
    }
}

STORAGES = {
    "files": storage(DATA_DIR),
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# -- Mail ---------------------------------------------------------------------------------------

globals().update(django_values(SERVICE["APP_NAME"], PUBLIC_URL))

# -- Background work ----------------------------------------------------------------------------

CELERY_BROKER_URL = addresses.celery_broker(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "global_keyprefix": "celery:",
    # Seconds after which tasks of a worker that was killed run again. Workers renew their hold on
    # theirs every few seconds (``backend.celery``), so this bounds no task.
    "visibility_timeout": 180,
    "unacked_restore_throttle": 1,
}
CELERY_BEAT_SCHEDULER = "backend.tasks.scheduler:Scheduler"
CELERY_TIMEZONE = "UTC"
CELERY_TASK_ROUTES = schedule.ROUTES
CELERY_BEAT_SCHEDULE = schedule.beat_schedule(
    job_heartbeat=SERVICE["JOB_HEARTBEAT"],
    cleans_files=SERVICE["FILE_CLEAN_UP"],
    backups=SERVICE["BACKUP_SCHEDULE"],
)
CELERY_WORKER_CONCURRENCY = Processes.WORKER_CONCURRENCY.read()
CHAIN_CONCURRENCY = Processes.CHAIN_CONCURRENCY.read()
BACKFILL_CONCURRENCY = Processes.BACKFILL_CONCURRENCY.read()
JOB_CONCURRENCY = Processes.JOB_CONCURRENCY.read()

# -- Applications -------------------------------------------------------------------------------

INSTALLED_APPS = [
    # First, for its runserver. The other processes don't load Twisted.
    *(["daphne"] if PROCESS == "manage" else []),
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
    "backend.http.edge.rest.ApiEdge",
    "backend.endpoints.middleware.ConnectionUpkeep",
    "backend.endpoints.middleware.Probes",
    "backend.endpoints.middleware.PagePolicy",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "objects.staff.gate.StaffAuthentication",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Before the applications': the admin's frame takes the place of unfold's.
        "DIRS": [*template_folders(BASE_DIR), BASE_DIR / "backend" / "templates"],
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
    "objects.users.accounts.hashers.Bcrypt",  # of imported accounts
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]

# -- The admin ----------------------------------------------------------------------------------

ENVIRONMENT = Site.ENVIRONMENT.read()
UNFOLD = admin.unfold(SERVICE["APP_NAME"])
# Forms hold whole objects, with inputs for every field.
DATA_UPLOAD_MAX_MEMORY_SIZE = SERVICE["MAX_BODY_SIZE"]
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

LOG_LEVEL = Processes.LOG_LEVEL.read()
LOG_FORMAT = Processes.LOG_FORMAT.read()
LOG_KEEP = Processes.LOG_KEEP.read()
LOGGING_CONFIG = "backend.logs.setup.configure_from"
LOGGING = {
    "level": LOG_LEVEL,
    "style": LOG_FORMAT,
    "process": PROCESS,
    "redis_url": REDIS_URL,
    "keep": LOG_KEEP,
}

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")
