"""Error messages that apps know from Parse Server."""

from __future__ import annotations

import re
from typing import Final

_NESTED: Final = re.compile(r"\.\$(?:or|and|nor)\.|\.where(?:\.|$)")


def parse_message(text: str, place: str) -> str:
    """Return Parse Server's text of an error, to which apps compare it.

    The place of the fault follows where the text alone doesn't lead to it: in parts of ``$or`` and
    the like, in sub-queries and in pipelines.
    """
    is_direct = place.startswith(("where", "order")) and _NESTED.search(place) is None
    return text if is_direct else f"{text} ({place})"
