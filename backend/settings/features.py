"""Feature flags that the environment switches: every variable ``ENABLE_…``.

``on`` or ``off`` (as any switch), or ``25%``: on for so many of all users.
"""

from __future__ import annotations

import os
import re

from backend.settings import environment
from backend.settings.environment import BadSetting

_VARIABLE = re.compile(r"ENABLE_[A-Z0-9_]+")
_PERCENTAGE = re.compile(r"(100|[1-9]?[0-9])\s*%")
_FILE = "_FILE"


def overrides() -> dict[str, tuple[bool, int | None]]:
    """For each variable whether it says on, and the percentage if it says one."""
    names = {name.removesuffix(_FILE) for name in os.environ if _VARIABLE.fullmatch(name)}
    return {name: _read(name) for name in sorted(names)}


def _read(name: str) -> tuple[bool, int | None]:
    percentage = _PERCENTAGE.fullmatch(environment.text(name))
    if percentage is not None:
        return True, int(percentage[1])
    try:
        return environment.flag(name, False), None
    except BadSetting:
        raise BadSetting(f"{name} must be on, off or a percentage such as 25%.") from None
