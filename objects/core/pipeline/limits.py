"""Limits on the size of a pipeline, independent of its shape."""

from __future__ import annotations

from collections.abc import Sized
from typing import Final

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json

_MAX_FIELDS: Final = 500  # of one stage
_MAX_PARTS: Final = 5_000
# Deeper than any parser allows; the parsers have better error messages.
_DEEPEST: Final = 100


def check_fields(fields: Sized, place: str) -> None:
    """Raise ``InvalidQuery`` if a stage names too many fields."""
    if len(fields) > _MAX_FIELDS:
        raise InvalidQuery(f"{place}: at most {_MAX_FIELDS} fields")


def check_size(pipeline: Json) -> None:
    """Raise ``InvalidQuery`` for a pipeline of more than 5,000 parts.

    Parts are what has to be computed: fields, operators, and the members of objects and arrays
    with any of these in them. Constants are none, however long.
    """
    if _parts(pipeline, 0) > _MAX_PARTS:
        raise InvalidQuery(
            f"pipeline: at most {_MAX_PARTS:,} fields, operators and members of arrays"
        )


def _parts(json: Json, depth: int) -> int:
    if isinstance(json, str):
        return int(json.startswith("$"))
    if depth > _DEEPEST or not isinstance(json, list | dict):
        return 0
    if isinstance(json, list):
        inner = sum(_parts(item, depth + 1) for item in json)
        return inner + len(json) if inner else 0
    inner = sum(_parts(item, depth + 1) for item in json.values())
    return inner + len(json) if inner or any(key.startswith("$") for key in json) else 0
