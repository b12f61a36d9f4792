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
    return _CONTROLS.sub(_escaped, _encode(record))


def _escaped(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match[0].decode())
