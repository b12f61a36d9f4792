"""The routes that belong to no app: health, and the document itself."""

from __future__ import annotations

from typing import Any

from backend.http.permissions import Requires
from backend.kernel.principal import Principal
from backend.openapi.operations import Operation, answer
from backend.openapi.sources import Names, Offer, Part, contribute
from backend.settings.conf import service_settings

_TAG = "Service"
_OK: dict[str, Any] = {
    "type": "object",
    "properties": {"status": {"const": "ok"}},
    "required": ["status"],
}
_INFO: dict[str, Any] = {
    "type": "object",
    "properties": {
        "features": {"type": "object"},
        "parseServerVersion": {"type": "string"},
        "serviceVersion": {"type": "string"},
    },
    "required": ["features", "parseServerVersion", "serviceVersion"],
}


def contribute_service() -> None:
    """Describe the routes of ``backend.http``."""
    contribute(_routes)


def _routes(principal: Principal) -> Offer:
    with_page = service_settings.API_DOCS
    return Offer(with_page, lambda names: _part(names, with_page))


def _part(names: Names, with_page: bool) -> Part:
    part = Part(
        {
            "/health": {
                "get": Operation(
                    "health",
                    _TAG,
                    "Whether the service answers",
                    {"200": answer("It does.", _OK)},
                    requires=None,
                    refuses=False,
                )
            },
            "/serverInfo": {
                "get": Operation(
                    "serverInfo",
                    _TAG,
                    "Versions and features, for dashboards",
                    {"200": answer("What there is.", _INFO)},
                    requires=Requires.MASTER_KEY,
                )
            },
            "/openapi.json": {
                "get": Operation(
                    "openapi",
                    _TAG,
                    "This document, as the caller may know it",
                    {
                        "200": answer("The document.", {"type": "object"}, ETag="ETag"),
                        "304": {"description": "It is what you have."},
                    },
                )
            },
        }
    )
    if with_page:
        part.paths["/docs"] = {
            "get": Operation(
                "docs",
                _TAG,
                "A page to read this document and try requests",
                {
                    "200": {
                        "description": "The page.",
                        "content": {"text/html": {"schema": {"type": "string"}}},
                    }
                },
                requires=None,
            )
        }
    return part
