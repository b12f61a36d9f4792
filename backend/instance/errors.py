"""What stops a start: one sentence for the person at the terminal."""

from __future__ import annotations


class StartError(Exception):
    """The service can't be started. The text says why, and what to do about it."""
