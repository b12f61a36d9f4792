"""The admin's pages for operators: logs, limits, maintenance mode, access checks, pushes."""

from __future__ import annotations

from objects.admin.operations import (  # noqa: F401 (registers)
    access_page,
    archive_banner,
    hold_banner,
    limit_pages,
    log_pages,
    maintenance_page,
    process_page,
    push_pages,
)
