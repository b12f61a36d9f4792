"""Hides keys, tokens and passwords in what is written down: by the name of a field, and by their
look in a text."""

from __future__ import annotations

import re
from typing import Final

from backend.kernel.texts.cache import short_cache

MASK: Final = "***"

_NAMES = (
    r"authorization|cookie|set-cookie"
    r"|(?:http[-_])?x[-_](?:svc|parse)[-_][\w-]*(?:key|token)"
    r"|(?:[\w-]*[_-])?(?:master|maintenance|rest_?api|java_?script|client|webhook|secret|api|private)_?key(?:_\w+)?"
    r"|(?:[\w-]*[_-])?(?:session|auth|temporaryAuthentication|access|reset|csrf|csrfmiddleware)?_?token"
    r"|(?:[\w-]*[_-])?password|passwd|secret"
)
_SENSITIVE_NAME = re.compile(rf"(?:{_NAMES})\Z", re.IGNORECASE)
_SENSITIVE_TEXT = re.compile(
    # A session token, wherever it stands
    r"\br:[0-9A-Za-z]{16,}"
    # user:password@ in a URL
    r"|(?<=://)[^/\s@]+(?=@)"
    # name: value, name=value, "name": "value", also in a text that is quoted itself
    rf"|(?i:(?<![\w-])(?P<name>{_NAMES})(?P<between>\\*['\"]?\s*[:=]\s*)"
    r"(?:(?P<begin>b?(?P<quote>\\*['\"]))(?:(?!(?P=quote))(?:\\.|[^\\\n]))+"
    r"|(?:(?:basic|bearer)\s+)?[^\s'\",;&}]+))"
)


@short_cache(maxsize=1024, longest=100)
def is_sensitive(name: str) -> bool:
    """Whether a field or header of this name holds a secret."""
    return _SENSITIVE_NAME.match(name) is not None


def _hide(match: re.Match[str]) -> str:
    name = match["name"]
    return f"{name}{match['between']}{match['begin'] or ''}{MASK}" if name else MASK


def mask_text(text: str) -> str:
    """The text without the secrets that can be recognised in it."""
    # Most texts can hold none, and finding that out is cheaper than trying the pattern.
    return _SENSITIVE_TEXT.sub(_hide, text) if ":" in text or "=" in text else text
