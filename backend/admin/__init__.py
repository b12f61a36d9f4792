"""The admin's pages of the project itself: staff, backups, settings, and the search."""

from __future__ import annotations

from backend.admin import backups, search, staff  # noqa: F401 (register their pages)
from backend.overview import advisor, start  # noqa: F401 (register their pages)
