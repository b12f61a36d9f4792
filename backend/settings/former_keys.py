"""Keys that were replaced and still count until a moment: ``FORMER_KEYS``.

``MASTER_KEY=the-old-one@2026-12-24T00:00:00Z, REST_API_KEY=…``
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

Former = Mapping[str, Sequence[tuple[str, float]]]
"""By the name of the key: what it was, and until when (seconds since the epoch) it counts."""

NAMES = (
    "MASTER_KEY",
    "READ_ONLY_MASTER_KEY",
    "MAINTENANCE_KEY",
    "REST_API_KEY",
    "JAVASCRIPT_KEY",
    "CLIENT_KEY",
)
_ITEM = re.compile(rf"({'|'.join(NAMES)})=(.+)@([0-9T:-]+Z)")


def parse(items: Sequence[str]) -> dict[str, tuple[tuple[str, float], ...]]:
    """The items of the setting. Raises ``ValueError`` with the place of one that is none."""
    keys: dict[str, tuple[tuple[str, float], ...]] = {}
    for place, item in enumerate(items):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(f"[{place}] must be NAME=KEY@TIME, such as …@2026-12-24T00:00:00Z")
        try:
            until = datetime.fromisoformat(match[3].removesuffix("Z")).replace(tzinfo=UTC)
        except ValueError:
            raise ValueError(f"[{place}] must end with a time like 2026-12-24T00:00:00Z") from None
        keys[match[1]] = (*keys.get(match[1], ()), (match[2], until.timestamp()))
    return keys


def format_keys(former: Former) -> str:
    """The setting's text."""
    return ",".join(
        f"{name}={key}@{datetime.fromtimestamp(until, UTC):%Y-%m-%dT%H:%M:%S}Z"
        for name, items in former.items()
        for key, until in items
    )


def unexpired(former: Former, now: float) -> dict[str, list[tuple[str, float]]]:
    """Those whose time isn't over."""
    counting = {name: [item for item in items if item[1] > now] for name, items in former.items()}
    return {name: items for name, items in counting.items() if items}
