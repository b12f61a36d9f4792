"""Sockets and live queries."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from backend.settings.declaration import Area, flag, items, whole, words


def _origin(word: str) -> str:
    """Return an origin as browsers send it, in lower case; ``https://*.example.org`` is any host
    below. Raises ``ValueError``."""
    parts = urlsplit(word.lower())
    if not parts.scheme or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(word)
    return f"{parts.scheme}://{parts.netloc}"


LIVE_QUERY_KEYS: Final = ("javascriptKey", "restAPIKey", "clientKey", "windowsKey", "masterKey")


def _key_name(word: str) -> str:
    names = {name.lower(): name for name in LIVE_QUERY_KEYS}
    if word.lower() not in names:
        raise ValueError(word)
    return names[word.lower()]


class Sockets(Area):
    """Who may connect, and what one connection may take. Each limit is for one process."""

    title = "Sockets"

    WS_ALLOWED_ORIGINS = items(
        "origins of pages that may connect, such as `https://app.example.org,https://*.example.net`"
        "; programs that aren't browsers send none and may",
        _origin,
        "origins such as https://app.example.org",
        shown="any",
    )
    WS_REQUIRE_KEY = flag(
        False, "`/ws` needs the application's id and a client key, live queries need a key"
    )
    WS_MAX_CONNECTIONS = whole(20_000, "sockets of one process; 0 is no limit")
    WS_MAX_PER_ADDRESS = whole(
        500, "sockets of one IP address (of IPv6: one /64) in one process; 0 is no limit"
    )
    WS_PING_INTERVAL = whole(25, "how often clients are pinged", least=1, most=3600, unit="s")
    WS_PING_TIMEOUT = whole(20, "how long they may take to answer", least=1, most=3600, unit="s")
    WS_MESSAGE_SIZE = whole(
        256 * 1024, "a client's message", least=1024, most=16 * 1024 * 1024, unit="bytes"
    )
    WS_MESSAGES_PER_MINUTE = whole(3_000, "messages that a client may send", least=1)
    WS_JUNK_PER_MINUTE = whole(
        60,
        "messages that make no sense; one of more than 1 KiB counts for as many as it has",
        least=1,
    )
    WS_SEND_QUEUE = whole(
        1024 * 1024,
        "data that may wait for a client before it is too slow",
        least=65_536,
        most=64 * 1024 * 1024,
        unit="bytes",
    )
    LIVE_QUERY_CLASSES = words(
        "classes that have live queries; `none` switches them off", shown="all"
    )
    LIVE_QUERY_KEY_PAIRS = items(
        "keys of which a client of live queries must send one: `javascriptKey`, `restAPIKey`,"
        " `clientKey`, `windowsKey`, `masterKey`. The master key reads everything only if it is"
        " one of them ([realtime.md](realtime.md#keys))",
        _key_name,
        f"names out of {', '.join(LIVE_QUERY_KEYS)}",
        shown="none needed",
    )
    LIVE_QUERY_MAX_SUBSCRIPTIONS = whole(
        1000,
        "subscriptions of one connection; what those of an address may take follows from"
        " `MEMORY_LIMIT` ([realtime.md](realtime.md#what-one-address-may-take))",
        least=1,
    )
