"""What keeps a backup from being made or restored."""

from __future__ import annotations


class BackupError(Exception):
    """Nothing was changed, unless the text says so. It is one or two sentences for an operator."""
