"""Headers of the service, which have an alias of Parse's: ``X-Svc-…`` and ``X-Parse-…``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
