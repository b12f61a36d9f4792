"""Settings of the chain app, from the environment.

``RPC_URLS_<network id>`` lists the service's own endpoints of a network, ``URL`` or ``URL WEIGHT``
each; they stand beside those that staff have added. ``SIGNER_PRIVATE_KEY`` signs on every network
that has no ``SIGNER_PRIVATE_KEY_<network id>``.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final
from urllib.parse import urlsplit

from backend.settings import environment
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting

QUEUE: Final = "chain"
BACKFILL_QUEUE: Final = "backfill"
ROUTES: dict[str, Any] = {
    "chain.backfill": {"queue": BACKFILL_QUEUE},
    "chain.audit": {"queue": BACKFILL_QUEUE},
    "chain.*": {"queue": QUEUE},
}
_NUMBERED = re.compile(r"_([1-9][0-9]*)(_FILE)?$")
_SCHEMES = ("http", "https")


def service_values() -> dict[str, Any]:
    """The knobs of ``backend.settings.conf`` that are about the chain."""
    limits: dict[str, dict[str, int]] = {
        "RPC_TIMEOUT": {"least": 1, "most": 120},
        "RPC_MAX_LAG": {"least": 1, "most": 10_000},
        "VERIFY_PERCENT": {"least": 0, "most": 100},
        "OUTBOX_KEEP": {"least": 1, "most": 3650},
    }
    values: dict[str, Any] = {
        name: environment.whole(name, DEFAULTS[name], **limit) for name, limit in limits.items()
    }
    for name in ("REORG_REOPEN", "STALLED_REVIVE"):
        values[name] = environment.flag(name, DEFAULTS[name])
    values["RPC_URLS"] = {
        network: _endpoints(f"RPC_URLS_{network}") for network in numbered("RPC_URLS")
    }
    return values


def numbered(name: str) -> list[int]:
    """The numbers N for which the environment has ``NAME_N``."""
    found = {
        int(match[1])
        for variable in os.environ
        if (match := _NUMBERED.search(variable)) and variable[: match.start()] == name
    }
    return sorted(found)


def _endpoints(name: str) -> tuple[tuple[str, int], ...]:
    found = []
    for item in environment.words(name):
        url, _, weight = item.partition(" ")
        try:
            usable = urlsplit(url).scheme in _SCHEMES and bool(urlsplit(url).hostname)
        except ValueError:
            usable = False
        if not usable or not (weight.strip() or "10").isdecimal():
            # Without the value: it may have a key in it.
            raise BadSetting(f"{name} must list URLs of http or https, each with a weight or not.")
        found.append((url, int(weight or 10)))
    return tuple(found)


def beat_schedule() -> dict[str, Any]:
    """What beat does for the chain."""

    def every(seconds: float, task: str) -> dict[str, Any]:
        return {"task": task, "schedule": seconds, "options": {"expires": seconds}}

    return {
        "follow-chains": every(1.0, "chain.dispatch"),
        "finalize-chains": every(10.0, "chain.finalize_all"),
        "resend-transactions": every(15.0, "chain.resend_all"),
        "audit-chains": every(300.0, "chain.audit_all"),
        "prune-chains": every(3600.0, "chain.prune"),
    }
