"""Pages as HTTP answers: HTML that loads nothing and runs nothing.

Addresses of pages hold tokens, so they are told to nobody (``Referrer-Policy``), kept nowhere
(``no-store``) and shown in no frame. Styles are in the page under a nonce; there are no scripts.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.http import HttpResponse
from django.template.loader import render_to_string

from backend.kernel.texts.encoding import encode_text
from backend.settings.conf import service_settings

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}
_POLICY = (
    "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)


def page(name: str, status: int = 200, **context: Any) -> HttpResponse:
    """The page of a template in ``users/pages``; ``name`` is one of the service's own."""
    nonce = secrets.token_urlsafe(16)
    content = render_to_string(
        f"users/pages/{name}.html",
        {
            "app_name": service_settings.APP_NAME,
            "nonce": nonce,
            "request_reset_url": address_of("request_password_reset"),
            "resend_url": address_of("resend_verification_email"),
            **context,
        },
    )
    policy = {"Content-Security-Policy": _POLICY.format(nonce=nonce)}
    return _response(content, status, policy)


def see_other(name: str) -> HttpResponse:
    """Go to a page by GET, so that reloading it sends nothing again."""
    return _response("", 303, {"Location": address_of(name)})


def address_of(page: str) -> str:
    """Return the URL of a page on the host of the request."""
    settings = service_settings
    return f"{settings.MOUNT_PATH}/apps/{quote(settings.APP_ID, safe='')}/{page}"


def _response(content: str, status: int, headers: Mapping[str, str]) -> HttpResponse:
    encoded = encode_text(content)
    response = HttpResponse(encoded, status=status, content_type="text/html; charset=utf-8")
    response.headers["Content-Length"] = str(len(encoded))
    for name, value in {**_HEADERS, **headers}.items():
        response.headers[name] = value
    return response
