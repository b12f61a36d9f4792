"""The admin's pages of server code: functions and what else is registered, feature flags."""

from __future__ import annotations

from functions.admin import (  # noqa: F401 (register)
    feature_flags,
    function_pages,
    hook_pages,
    jobs,
    search,
)
