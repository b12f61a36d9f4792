"""The types of JSON: decoded values, objects, and the schemas that describe them."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A decoded JSON value."""
Wire: TypeAlias = dict[str, Json]
"""An object as JSON has it: in requests, in responses and in triggers."""
JsonObject: TypeAlias = dict[str, Any]
"""An object as JSON has it, whose values are of types that only its reader knows."""
Schema: TypeAlias = JsonObject
"""A JSON schema, or another object of an OpenAPI document."""
