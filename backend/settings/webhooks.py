"""The settings of webhooks, from the environment."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from backend.settings import environment
from backend.settings.environment import BadSetting

PREFIX: Final = "whsec_"
SCHEDULE: Final[dict[str, Any]] = {
    "deliver-webhooks": {
        "task": "functions.deliver_due",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "forget-webhooks": {
        "task": "functions.forget_old_deliveries",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
}


def service_values() -> dict[str, Any]:
    """The part of ``settings.SERVICE`` that is about webhooks."""
    return {
        "WEBHOOK_KEY": environment.text("WEBHOOK_KEY"),
        "WEBHOOK_SECRET": _secrets("WEBHOOK_SECRET"),
        # A transaction waits meanwhile, and the database doesn't wait longer than a minute for it.
        "WEBHOOK_TIMEOUT": environment.whole("WEBHOOK_TIMEOUT", 10, least=1, most=25),
        "WEBHOOK_RETENTION": environment.whole("WEBHOOK_RETENTION", 7, least=1, most=365),
    }


def _secrets(name: str) -> str:
    """Secrets as Standard Webhooks writes them, with commas between them. Their text is never
    repeated."""
    given = environment.words(name)
    for value in given:
        try:
            size = len(base64.b64decode(value.removeprefix(PREFIX), validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if not value.startswith(PREFIX) or not 24 <= size <= 64:
            raise BadSetting(f"{name} must be {PREFIX} and 24 to 64 random bytes in base64.")
    return ",".join(given)
