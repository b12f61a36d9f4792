"""``/``: a page for people who open the address in a browser. There are no secrets in it."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from backend import __version__
from backend.settings.conf import service_settings

_ICON = "backend/icon.svg"


@require_safe
def front_page(request: HttpRequest) -> HttpResponseBase:
    """Name and version, and where the API, its documentation and the admin are."""
    mount = service_settings.MOUNT_PATH
    return render(
        request,
        "backend/front_page.html",
        {
            "name": service_settings.APP_NAME,
            "version": __version__,
            "mount": mount,
            "docs": f"{mount}/docs" if service_settings.API_DOCS else "",
            "icon": f"{settings.STATIC_URL}{_ICON}",
        },
    )


@require_safe
def favicon(request: HttpRequest) -> HttpResponseBase:
    """What browsers request for every page."""
    return redirect(f"{settings.STATIC_URL}{_ICON}", permanent=True)
