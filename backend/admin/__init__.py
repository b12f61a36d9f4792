"""The admin's pages of the project itself: staff, backups, settings, the documentation, and the
search."""

from __future__ import annotations

from backend.admin import (  # noqa: F401 (register their pages)
    backups,
    documentation,
    search,
    settings_page,
    staff,
)
from backend.overview import advisor, start  # noqa: F401 (register their pages)
