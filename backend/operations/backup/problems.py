"""What keeps a backup from being made or restored."""

from __future__ import annotations


class BackupError(Exception):
    """Nothing was changed, unless the text says so. It is one or two sentences for an operator."""


class PlaceError(BackupError):
    """The place of backups (``BACKUP_TO``) can't be used, or what it returned isn't what was
    written. The text names the place and never its credentials."""


class UnreadableObject(PlaceError):
    """The object is missing, damaged, or encrypted with another key. The place itself works."""
