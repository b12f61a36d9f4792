"""Counts of a push by type of device and by offset from UTC, as its status has them.

Clients choose the types of their devices, and each becomes a key of an object that apps read. Types
that can't be keys, or that are one type too many, are counted as ``other``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from backend.kernel.json_types import Wire
from objects.core.names import PROHIBITED_KEYS

Totals: TypeAlias = dict[str, dict[str, int]]
"""Numbers of targets by key, by the field of the status."""

FIELDS: Final = ("sentPerType", "failedPerType", "sentPerUTCOffset", "failedPerUTCOffset")
MAX_TYPES: Final = 50
OTHER: Final = "other"
_LONGEST_TYPE: Final = 32  # characters


def add_type(totals: Totals, prefix: str, device_type: str, count: int) -> None:
    """Count targets whose installations have a type, under ``sent`` or ``failed``."""
    counts = totals.setdefault(f"{prefix}PerType", {})
    key = device_type if _is_key(device_type) else OTHER
    if key not in counts and len(counts) >= MAX_TYPES:
        key = OTHER
    counts[key] = counts.get(key, 0) + count


def add_offset(totals: Totals, prefix: str, hours: str, count: int) -> None:
    """Count targets of a wave. Its offset is this service's own text."""
    counts = totals.setdefault(f"{prefix}PerUTCOffset", {})
    counts[hours] = counts.get(hours, 0) + count


def as_fields(totals: Mapping[str, Mapping[str, int]]) -> Wire:
    """Return the fields of the status, without keys that earlier versions counted under."""
    fields: Totals = {}
    for name in FIELDS:
        for key, count in totals.get(name, {}).items():
            counts = fields.setdefault(name, {})
            shown = OTHER if key in PROHIBITED_KEYS else key
            counts[shown] = counts.get(shown, 0) + count
    return {name: {**counts} for name, counts in fields.items()}


def _is_key(device_type: str) -> bool:
    return (
        len(device_type) <= _LONGEST_TYPE
        and device_type.replace("-", "").isalnum()
        and device_type not in PROHIBITED_KEYS
    )
