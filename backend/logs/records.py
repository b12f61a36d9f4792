"""Log records as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from backend.kernel.texts.encoding import describe, json_encoder

_encode: Final = json_encoder(enc_hook=describe)
_CONTROLS: Final = re.compile(rb"\x7f|\xc2[\x80-\x9f]")


def encode(record: Mapping[str, Any]) -> bytes:
    """Return the record as one line that has no control characters, only their escapes.

    JSON escapes those below U+0020 alone; terminals obey U+009B as well. Raises ``InvalidJSON``.
    """
    line = _encode(record)
    # Most lines have none of them, and finding that out is cheaper than trying the pattern.
    if line.isascii() and b"\x7f" not in line:
        return line
    return _CONTROLS.sub(_escaped, line)


def _escaped(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match[0].decode())
