"""Settings of learned indexes, from the environment."""

from __future__ import annotations

from typing import Any, Final

from backend.settings import environment
from backend.settings.jobs import QUEUE

# Building an index may take minutes, for which no email should have to wait.
ROUTES: dict[str, Any] = {"objects.learn_indexes": {"queue": QUEUE}}
_EVERY: Final = 15.0  # seconds
SCHEDULE: dict[str, Any] = {
    "learn-indexes": {
        "task": "objects.learn_indexes",
        "schedule": _EVERY,
        "options": {"expires": _EVERY},
    }
}


def service_values() -> dict[str, str]:
    """The settings of learned indexes, as ``backend.settings.conf`` names them."""
    return {"AUTO_INDEX": environment.choice("AUTO_INDEX", "on", ("on", "suggest", "off"))}
