"""How the admin looks: django-unfold's settings."""

from __future__ import annotations

from typing import Any

from backend import __version__


def unfold(title: str) -> dict[str, Any]:
    """The value of ``UNFOLD``."""
    return {
        # A callable: texts would be tried as names of Python objects.
        "SITE_TITLE": lambda request: title,
        "SITE_HEADER": lambda request: title,
        "SITE_URL": "",
        "SITE_SYMBOL": "database",
        "SHOW_VIEW_ON_SITE": False,
        "SHOW_BACK_BUTTON": True,
        "ENVIRONMENT": "backend.site.model_admin.environment_badge",
        "SITE_FAVICONS": [
            {"rel": "icon", "type": "image/svg+xml", "href": "/static/backend/icon.svg"}
        ],
        # Browsers may keep it for an hour; the next release's has another address.
        "STYLES": [
            lambda request: f"/static/backend/admin.css?{__version__}",
            lambda request: f"/static/backend/navigation.css?{__version__}",
        ],
        "ACCOUNT": {"navigation": "backend.site.model_admin.account_links"},
        "SIDEBAR": {"show_search": True, "navigation": "backend.site.sidebar.navigation"},
        "COLORS": {
            "primary": {
                "50": "oklch(97% .014 254.6)",
                "100": "oklch(93.2% .032 255.6)",
                "200": "oklch(88.2% .059 254.1)",
                "300": "oklch(80.9% .105 251.8)",
                "400": "oklch(70.7% .165 254.6)",
                "500": "oklch(62.3% .214 259.8)",
                "600": "oklch(54.6% .245 262.9)",
                "700": "oklch(48.8% .243 264.4)",
                "800": "oklch(42.4% .199 265.6)",
                "900": "oklch(37.9% .146 265.5)",
                "950": "oklch(28.2% .091 267.9)",
            }
        },
    }
