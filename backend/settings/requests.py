"""Events of analytics, and requests that are sent again, from the environment."""

from __future__ import annotations

import re
from typing import Any

from backend.settings import environment
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting


def service_values() -> dict[str, Any]:
    """The settings of analytics and of idempotency, as ``backend.settings.conf`` names them."""
    return {
        "EVENT_RETENTION": environment.whole("EVENT_RETENTION", 90, least=1, most=3650),
        "EVENT_LIMIT": environment.whole("EVENT_LIMIT", DEFAULTS["EVENT_LIMIT"], least=1),
        "IDEMPOTENCY": environment.choice("IDEMPOTENCY", "replay", ("off", "replay", "refuse")),
        "IDEMPOTENCY_PATHS": _patterns("IDEMPOTENCY_PATHS"),
        "IDEMPOTENCY_TTL": environment.whole(
            "IDEMPOTENCY_TTL", DEFAULTS["IDEMPOTENCY_TTL"], least=1, most=31_536_000
        ),
    }


def _patterns(name: str) -> tuple[str, ...]:
    patterns = tuple(environment.words(name, DEFAULTS[name]))
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadSetting(f"{name} must list regular expressions: {error}.") from None
    return patterns
