"""Headers of the service, which have an alias of Parse's: ``X-Svc-…`` and ``X-Parse-…``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from backend.settings.conf import service_settings


def header_names(name: str) -> tuple[str, str]:
    """Return the keys of a header (``CLOUD_CONTEXT``) and of its alias in WSGI's environment."""
    return f"HTTP_X_SVC_{name}", f"HTTP_X_PARSE_{name}"


def read_header(meta: Mapping[str, Any], names: tuple[str, str]) -> str | None:
    """Return the text of a header, or of its alias if ``PARSE_HEADERS`` allows it; None without.

    WSGI hands over bytes as if they were Latin-1.
    """
    header, alias = names
    text: str | None = meta.get(header)
    if text is None and service_settings.PARSE_HEADERS:
        text = meta.get(alias)
    return text


def status_id_headers(kind: str, status_id: str) -> dict[str, str]:
    """Return the headers that name the status (``Job``, ``Push``) of what a request has started."""
    prefixes = ("Svc", "Parse") if service_settings.PARSE_HEADERS else ("Svc",)
    return {
        **{f"X-{prefix}-{kind}-Status-Id": status_id for prefix in prefixes},
        # Parse's JavaScript SDK reads only headers that are exposed, also without an origin.
        "Access-Control-Expose-Headers": ", ".join(settings.CORS_EXPOSE_HEADERS),
    }
