"""What can be wrong with a file or one of its rows."""

from __future__ import annotations


class UnusableFile(Exception):
    """The file can't be read any further; the message says why, with a line number."""


class BadRow(Exception):
    """This row makes no object; the message names the field."""
