"""What an import reports: errors that end it, and what it couldn't import."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias


class ImportFailed(Exception):
    """The import can't go on. The text says why."""


Report: TypeAlias = Callable[[str, str], None]
"""Called with the place (``Note/AbC123``) and the reason of what can't be imported."""
