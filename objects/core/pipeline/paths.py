"""Paths of fields in documents of a pipeline, and names of fields in its results.

A path begins with a field's name; ``_id`` is another name for ``objectId``, as are the native
names of MongoDB for the two timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from backend.kernel.errors import InvalidQuery
from backend.kernel.texts.shown import shown
from objects.core.names import PROHIBITED_KEYS, is_storable_text

Path: TypeAlias = tuple[str, ...]

MAX_STEPS: Final = 20

NATIVE_NAMES: Final[Mapping[str, str]] = {
    "_id": "objectId",
    "_created_at": "createdAt",
    "_updated_at": "updatedAt",
}


def parse_path(text: str, place: str) -> Path:
    """Return the steps of ``a.b``: a field's name and keys inside its value."""
    steps = text.split(".")
    for step in steps:
        if step == "" or step.startswith("$") or step in PROHIBITED_KEYS:
            raise InvalidQuery(f"{place}: bad field path: {shown(text)}")
        if not is_storable_text(step):
            raise InvalidQuery(f"{place}: bad field path: {shown(text)}")
    if len(steps) > MAX_STEPS:
        raise InvalidQuery(f"{place}: a field path has at most {MAX_STEPS} steps")
    steps[0] = NATIVE_NAMES.get(steps[0], steps[0])
    return tuple(steps)


def parse_name(text: str, place: str) -> str:
    """Return the name of one field of a result; ``_id`` is ``objectId``."""
    if "." in text or text == "__type":
        raise InvalidQuery(f"{place}: {shown(text)} can't be the name of a field")
    return parse_path(text, place)[0]
