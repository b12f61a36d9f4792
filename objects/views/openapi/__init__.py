"""The objects' part of the API document: what ``backend.rest_urls`` contributes for their
routes."""

from __future__ import annotations

from objects.views.openapi.sources import contribute_objects

__all__ = ["contribute_objects"]
