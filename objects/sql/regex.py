"""Patterns in SQL: as PostgreSQL's regular expressions, or better as ranges and plain search."""

from __future__ import annotations

from objects.core.regex.patterns import compile_regex
from objects.sql.fields import SHORT
from objects.sql.fragments import Sql

_LAST = chr(0x10FFFF)


def found_in(text: str, pattern: str, options: str, short: str | None = None) -> Sql:
    """Return whether a pattern is found in a text; ``text`` is SQL with collation "C".

    What begins with fixed letters is a range of the text as well, so that an index on it is used;
    a range of ``short``, its beginning (``fields.short_expression``), where that says the same.
    """
    regex = compile_regex(pattern, options)
    if regex.literal is not None:
        start = short if short is not None and len(regex.literal) < SHORT else text
        if regex.at_start and regex.at_end:
            return Sql(f"({start} = %s)", (regex.literal,))
        if regex.at_start:
            return begins_with(start, regex.literal)
        if not regex.at_end:
            return Sql(f"(strpos({text}, %s) > 0)", (regex.literal,))
    matched = Sql(f"({text} ~ %s)", (regex.postgres,))
    if regex.prefix:
        start = short if short is not None and len(regex.prefix) < SHORT else text
        return "(" + begins_with(start, regex.prefix) + " AND " + matched + ")"
    return matched


def begins_with(text: str, prefix: str) -> Sql:
    """Return the test for a prefix, as a range; ``text`` is SQL with collation "C"."""
    if not prefix:
        return Sql(f"({text} IS NOT NULL)")
    after = _first_text_after(prefix)
    if after is None:
        return Sql(f"({text} >= %s)", (prefix,))
    return Sql(f"({text} >= %s AND {text} < %s)", (prefix, after))


def _first_text_after(prefix: str) -> str | None:
    """Return the first text, by code point, after all texts with the prefix, or None."""
    stem = prefix.rstrip(_LAST)
    if not stem:
        return None
    code = ord(stem[-1]) + 1
    # The halves of surrogate pairs aren't characters.
    return stem[:-1] + chr(0xE000 if code == 0xD800 else code)
