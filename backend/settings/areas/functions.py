"""Server functions, jobs, webhooks and feature flags."""

from __future__ import annotations

import base64
import binascii
import os
import re
from typing import Final

from backend.settings import environment
from backend.settings.declaration import Area, Setting, networks, text, whole, words
from backend.settings.environment import BadSetting

SECRET_PREFIX: Final = "whsec_"

_FLAG = re.compile(r"ENABLE_[A-Z0-9_]+")
_PERCENTAGE = re.compile(r"(100|[1-9]?[0-9])\s*%")


def _webhook_secrets(name: str, default: str) -> str:
    """Read secrets in the format of Standard Webhooks. No error repeats them."""
    secrets = environment.words(name)
    for secret in secrets:
        try:
            size = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if not secret.startswith(SECRET_PREFIX) or not 24 <= size <= 64:
            raise BadSetting(f"{name} must be {SECRET_PREFIX} and 24 to 64 random bytes in base64.")
    return ",".join(secrets)


class Functions(Area):
    """Limits of functions and jobs, and what webhooks are sent with."""

    title = "Functions, jobs and webhooks"

    CLOUD_MODULES = words(
        "modules with server functions, triggers and jobs ([functions.md](functions.md)), by their"
        " Python names"
    )
    FUNCTION_TIME_LIMIT: Setting[float] = whole(
        30, "time that a call of a server function may take; 0 is no limit", most=3600, unit="s"
    )
    JOB_TIME_LIMIT = whole(
        3600,
        "time that a run of a job may take ([jobs.md](jobs.md)); 0 is no limit",
        most=30 * 86_400,
        unit="s",
    )
    JOB_HEARTBEAT = whole(
        10,
        "time between the heartbeats of a run; after four missing ones its worker counts as dead",
        least=1,
        most=300,
        unit="s",
    )
    JOB_STATUS_KEEP = whole(
        30, "time that runs are stored; 0 is without end", most=36_500, unit="days"
    )
    WEBHOOK_KEY = text(
        "sent with every [webhook](webhooks.md) as `X-Svc-Webhook-Key` and `X-Parse-Webhook-Key`",
        secret=True,
    )
    WEBHOOK_SECRET = Setting(
        "",
        f"signs webhooks: `{SECRET_PREFIX}` and 24 to 64 random bytes in base64; never sent. While"
        " it is replaced, the new and the old one, separated by a comma",
        _webhook_secrets,
        secret=True,
    )
    # A transaction waits meanwhile, and the database doesn't wait longer than a minute for it.
    WEBHOOK_TIMEOUT = whole(10, "time that a webhook may take", least=1, most=25, unit="s")
    WEBHOOK_REQUEST_TIMEOUT = whole(
        60, "time that all webhooks of one request may take", least=1, most=600, unit="s"
    )
    WEBHOOK_AFTER_TIMEOUT = whole(
        5,
        "time that the `after…` webhooks of one request may take before its response; a worker"
        " delivers the rest",
        most=25,
        unit="s",
    )
    WEBHOOK_ALLOW_PRIVATE = networks(
        "your private networks that webhooks may be sent to, also by http: `10.0.0.0/8,127.0.0.1`"
    )
    WEBHOOK_RETENTION = whole(
        7,
        "time that deliveries of webhooks are stored after their end",
        least=1,
        most=365,
        unit="days",
    )


def feature_overrides() -> dict[str, tuple[bool, int | None]]:
    """Return for each variable ``ENABLE_…`` whether it switches its feature flag on, and the
    percentage of users if it has one."""
    names = {name.removesuffix("_FILE") for name in os.environ if _FLAG.fullmatch(name)}
    return {name: _feature_override(name) for name in sorted(names)}


def _feature_override(name: str) -> tuple[bool, int | None]:
    percentage = _PERCENTAGE.fullmatch(environment.text(name))
    if percentage is not None:
        return True, int(percentage[1])
    try:
        return environment.flag(name, False), None
    except BadSetting:
        raise BadSetting(f"{name} must be on, off or a percentage such as 25%.") from None
