"""Settings of sockets, from the environment."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from backend.settings import environment
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting

_LIMITS: Final[dict[str, dict[str, int]]] = {
    "WS_MAX_CONNECTIONS": {},
    "WS_MAX_PER_ADDRESS": {},
    "WS_PING_INTERVAL": {"least": 1, "most": 3600},
    "WS_PING_TIMEOUT": {"least": 1, "most": 3600},
    "WS_MESSAGE_SIZE": {"least": 1024, "most": 16 * 1024 * 1024},
    "WS_MESSAGES_PER_MINUTE": {"least": 1},
    "WS_JUNK_PER_MINUTE": {"least": 1},
    "WS_SEND_QUEUE": {"least": 65_536, "most": 64 * 1024 * 1024},
    "LIVE_QUERY_MAX_SUBSCRIPTIONS": {"least": 1},
}


def service_values() -> dict[str, Any]:
    """The knobs of ``backend.settings.conf`` that are about sockets."""
    found: dict[str, Any] = {
        name: environment.whole(name, DEFAULTS[name], **limits) for name, limits in _LIMITS.items()
    }
    found["WS_ALLOWED_ORIGINS"] = tuple(map(_origin, environment.words("WS_ALLOWED_ORIGINS")))
    found["LIVE_QUERY_CLASSES"] = tuple(environment.words("LIVE_QUERY_CLASSES"))
    found["WS_REQUIRE_KEY"] = environment.flag("WS_REQUIRE_KEY", DEFAULTS["WS_REQUIRE_KEY"])
    return found


def _origin(word: str) -> str:
    """An origin as browsers send it, in lower case; ``https://*.example.org`` is any host below."""
    try:
        parts = urlsplit(word.lower())
        good = parts.scheme and parts.hostname and not parts.path.strip("/") and not parts.query
    except ValueError:
        good = False
    if not good:
        raise BadSetting(
            f"WS_ALLOWED_ORIGINS must list origins such as https://app.example.org, not {word!r}."
        )
    return f"{parts.scheme}://{parts.netloc}"
