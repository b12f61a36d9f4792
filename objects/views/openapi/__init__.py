"""The part of the API document that depends on classes: their forms, and the routes of each."""

from __future__ import annotations

from objects.views.openapi.routes import class_routes
from objects.views.openapi.values import OPERATORS, VALUES

SCHEMAS = {**VALUES, **OPERATORS}
"""Typed values and update operators, as components."""

__all__ = ["SCHEMAS", "class_routes"]
