"""The objects of every benchmark: made from their number alone, so the same for every server."""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Any

OWNERS = 1000
MAIN = "BenchObject"
OWNER = "BenchOwner"
WRITTEN = "BenchWritten"
"""Objects that workloads create; apart, so that reads meet the same table in every round."""
CHECKED = "BenchChecked"
"""The same, with a trigger before each save."""

OWNER_FIELDS: dict[str, dict[str, str]] = {
    "name": {"type": "String"},
    "level": {"type": "Number"},
}
FIELDS: dict[str, dict[str, str]] = {
    "name": {"type": "String"},
    "code": {"type": "String"},
    "score": {"type": "Number"},
    "rank": {"type": "Number"},
    "visits": {"type": "Number"},
    "active": {"type": "Boolean"},
    "seenAt": {"type": "Date"},
    "tags": {"type": "Array"},
    "details": {"type": "Object"},
    "owner": {"type": "Pointer", "targetClass": OWNER},
}
_START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def owner(number: int) -> dict[str, Any]:
    return {"name": f"Owner {number}", "level": number % 10}


def spread(number: int, salt: str) -> int:
    """A number that looks random and is always the same."""
    return int.from_bytes(hashlib.sha256(f"{salt}{number}".encode()).digest()[:6], "big")


def score(number: int, objects: int) -> int:
    """Scores are spread evenly over 0 … ``objects``."""
    return spread(number, "score") % objects


def code(number: int) -> str:
    """Different for every object."""
    return f"code-{spread(number, 'code'):014x}-{number}"


def an_object(number: int, objects: int, owner_ids: list[str]) -> dict[str, Any]:
    """The object of this number, about 400 bytes as JSON."""
    seen = _START + dt.timedelta(seconds=spread(number, "seen") % 31_536_000)
    return {
        "name": f"Object {number} of the benchmark",
        "code": code(number),
        "score": score(number, objects),
        "rank": spread(number, "rank") % objects,
        "visits": 0,
        "active": number % 2 == 0,
        "seenAt": {"__type": "Date", "iso": seen.strftime("%Y-%m-%dT%H:%M:%S.000Z")},
        "tags": [f"tag{number % 50}", f"group{number % 7}", "all"],
        "details": {"colour": ("red", "green", "blue")[number % 3], "size": {"w": number % 640}},
        "owner": {
            "__type": "Pointer",
            "className": OWNER,
            "objectId": owner_ids[spread(number, "owner") % len(owner_ids)],
        },
    }
