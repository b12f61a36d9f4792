"""The separate host for files (``FILE_HOST``): which requests are meant for it.

It serves files and nothing else, and files are served nowhere else, so that no upload shares an
origin with the admin, the API or a page of the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from backend.kernel.errors import CommandUnavailable
from backend.settings.conf import service_settings


def is_requested(host: str) -> bool:
    """Whether a ``Host`` header names the host for files, on any port. Never without ``FILE_HOST``.

    A port doesn't separate hosts: browsers send cookies to all of them.
    """
    separate = service_settings.FILE_HOST
    return bool(separate) and _name(host) == _name(separate)


def is_for_files(meta: Mapping[str, Any]) -> bool:
    """As ``is_requested``, for the headers of a WSGI request."""
    return bool(service_settings.FILE_HOST) and is_requested(str(meta.get("HTTP_HOST") or ""))


def nothing_else() -> CommandUnavailable:
    """The error for everything but files on the host for files."""
    return CommandUnavailable("Only files are served on this host.", status=404)


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host.strip()}").hostname or "").rstrip(".")
    except ValueError:
        return ""
