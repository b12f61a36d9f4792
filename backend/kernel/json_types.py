"""The types of JSON: decoded values, objects, and the schemas that describe them."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A decoded JSON value."""
Wire: TypeAlias = dict[str, Json]
"""An object as JSON has it: in requests, in responses and in triggers."""
Schema: TypeAlias = dict[str, Any]
"""A JSON schema, or another object of an OpenAPI document."""
