"""People: users, their sessions, roles and installations."""

from __future__ import annotations

from objects.admin.people import (  # noqa: F401 (registers)
    installation_pages,
    role_pages,
    session_pages,
    user_actions,
    user_pages,
)
