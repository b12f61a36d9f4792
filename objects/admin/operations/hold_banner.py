"""The banner of a restored instance that is held."""

from __future__ import annotations

from django.http import HttpRequest

from backend.site.model_admin import BannerLevel, banner
from objects.database import hold


@banner
def hold_banner(request: HttpRequest) -> tuple[BannerLevel, str] | None:
    """Return the banner for all pages that announces the hold."""
    since = hold.since()
    if since is None:
        return None
    return "warning", (
        f"This instance was restored at {since:%Y-%m-%d %H:%M} UTC: schedules, webhooks, pushes,"
        " emails and transactions are held until an operator runs script/manage resume."
    )
