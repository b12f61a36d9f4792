"""Text from clients in error messages, and on terminals."""

from __future__ import annotations


def shown(text: object) -> str:
    """Return a client's text as error messages repeat it: printable, at most 80 characters."""
    printable = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text)[:80]
    )
    return printable if len(str(text)) <= 80 else printable + "…"


def for_terminal(text: str) -> str:
    """Return a text of several lines without what a terminal would carry out, such as ESC."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def shown_value(value: object) -> str:
    """Return a JSON value as error messages of Parse repeat it: as text of JavaScript."""
    return shown(_in_javascript(value))


def _in_javascript(value: object, depth: int = 0) -> str:
    if isinstance(value, dict):
        return "[object Object]"
    if isinstance(value, list):
        if depth > 3:
            return "…"
        return ",".join(
            "" if item is None else _in_javascript(item, depth + 1) for item in value[:20]
        )
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
