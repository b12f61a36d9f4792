"""Messages about values that don't fit a parameter, from those of msgspec.

Types have the names of JSON and of the REST API instead of Python's, and messages name what is
accepted. Plain Python, without Django.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_TYPE_NAMES: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "dict": "an object",
    "list": "a list",
    "null": "null",
    "datetime": "a date",
    "bytes": "Bytes",
    "NoneType": "null",
}
_FORMATS: Final = {
    "RFC3339 encoded datetime": (
        "a Date, or a date and time in ISO 8601 such as 2026-01-31T09:00:00Z"
    ),
    "RFC3339 encoded date": "a date in ISO 8601 such as 2026-01-31",
    "RFC3339 encoded time": "a time in ISO 8601 such as 09:00:00Z",
    "ISO8601 duration": "a duration in ISO 8601 such as PT90S",
}
_MOST_CHOICES: Final = 20
_LONGEST_VALUE: Final = 80  # characters
_STEP: Final = re.compile(r"\.([^.\[]+)|\[[^\]]*\]")


def reason(text: str, schema: Mapping[str, Any]) -> str:
    """Return the message for an error of msgspec about a value with this JSON schema."""
    text, _, place = text.partition(" - at ")
    place = place.strip("`").removeprefix("$")
    text = _with_expectation(text, schema, place)
    text = re.sub(r"`([^`]*)`", lambda match: type_names(match[1]), text)
    place = place.removeprefix(".")
    text = text[:1].lower() + text[1:]
    return f"{place}: {text}" if place else text


def type_names(types: str) -> str:
    """Return the names of types that msgspec separates by ``|``."""
    kinds = types.split(" | ")
    if "float" in kinds:
        kinds = [kind for kind in kinds if kind != "int"]
    return " or ".join(_TYPE_NAMES.get(kind, kind) for kind in kinds)


def choices(schema: Mapping[str, Any], place: str = "") -> str | None:
    """Return the values that are accepted, as text; None unless they are listed."""
    values = [repr(value) for value in _listed(schema, [*_STEP.finditer(place)])]
    if not values:
        return None
    shown = ", ".join(values[:_MOST_CHOICES])
    return f"one of {shown}" if len(values) <= _MOST_CHOICES else f"one of {shown}, …"


def _with_expectation(text: str, schema: Mapping[str, Any], place: str) -> str:
    """Return a message with what is expected, where msgspec only names what is wrong."""
    problem = text.removeprefix("Invalid ")
    if problem in _FORMATS:
        return f"Expected {_FORMATS[problem]}"
    value = problem.removeprefix("enum value ")
    if value == problem:
        return text
    value = value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}…"
    value = value.replace("`", "'")  # they mark types
    allowed = choices(schema, place)
    return f"Expected {allowed}, got {value}" if allowed else f"Unexpected value {value}"


def _listed(schema: Any, steps: list[re.Match[str]]) -> Iterator[Any]:
    """Yield the enumerated values at a place within a JSON schema."""
    if not isinstance(schema, Mapping):
        return
    for alternative in schema.get("anyOf", ()):
        yield from _listed(alternative, steps)
    if not steps:
        yield from schema.get("enum", ())
        return
    step, *remaining = steps
    if step[1] is not None:
        yield from _listed(schema.get("properties", {}).get(step[1]), remaining)
        return
    if schema.get("prefixItems") and step[0][1:-1].isdigit():
        position = int(step[0][1:-1])
        yield from _listed(dict(enumerate(schema["prefixItems"])).get(position), remaining)
    yield from _listed(schema.get("items"), remaining)
    yield from _listed(schema.get("additionalProperties"), remaining)
