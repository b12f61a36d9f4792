"""``/openapi.json`` and ``/docs``."""

from __future__ import annotations

from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.http import parse_etags

from backend.endpoints.middleware import static_sources
from backend.http import rate_limits
from backend.http.call import Call
from backend.http.context import client_address
from backend.http.exceptions import error_response
from backend.http.renderers import Answer
from backend.http.views import MethodNotAllowed, ServiceView
from backend.kernel.errors import CommandUnavailable
from backend.kernel.principal import APPLICATION
from backend.openapi import Body, Response, answer, describes, document_for
from backend.settings.conf import service_settings

_UI = "drf_spectacular_sidecar/swagger-ui-dist"
# Swagger UI writes style attributes; nothing that is loaded comes from elsewhere.
_POLICY = (
    "default-src 'none'; script-src {static}; style-src {static} 'unsafe-inline';"
    " connect-src 'self'; img-src 'self' data:; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}


class DocumentView(ServiceView):
    """The OpenAPI document, as the caller may know it. It is 304 for who has the same already."""

    tag = "Service"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().dispatch(request, *args, **kwargs)
        etag = response.headers.get("ETag", "")
        condition = request.META.get("HTTP_IF_NONE_MATCH")
        if not etag or condition is None:
            return response
        tags = {tag.removeprefix("W/") for tag in parse_etags(condition)}
        if not tags & {etag, "*"}:
            return response
        unchanged = HttpResponseNotModified()
        for name in ("ETag", "Cache-Control"):
            unchanged.headers[name] = response.headers[name]
        return rate_limits.stamped(unchanged, request)

    @describes(
        "openapi",
        "This document, as the caller may know it",
        response=(
            answer(
                "The document.",
                dict[str, Any],
                headers={"ETag": {"$ref": "#/components/headers/ETag"}},
            ),
            Response(304, "It is what you have."),
        ),
    )
    def get(self, call: Call) -> Answer:
        document = document_for(call.principal)
        # For one caller, who asks each time whether it is still the same.
        headers = {"ETag": document.etag, "Cache-Control": "private, no-cache"}
        return Answer(msgspec.Raw(document.text), headers=headers)


class DocsPage(ServiceView):
    """A page that asks for keys, shows the document and sends requests. It holds no data."""

    tag = "Service"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        method = request.method or ""
        try:
            rate_limits.enter(request, method, client_address(request.META), APPLICATION, "")
            response = self._page(request, method)
        except Exception as error:
            response = error_response(error, request)
        return rate_limits.stamped(response, request)

    @describes(
        "docs",
        "A page to read this document and try requests",
        response=Response(200, "The page.", Body({"text/html": str})),
        is_public=True,
        setting="API_DOCS",
        method="get",
    )
    def _page(self, request: HttpRequest, method: str) -> HttpResponse:
        if not service_settings.API_DOCS:
            raise CommandUnavailable("There is no such route.", status=404)
        if method not in ("GET", "HEAD"):
            raise MethodNotAllowed(method, self._methods())
        policy = _POLICY.format(static=static_sources(request))
        headers = {"Content-Security-Policy": policy, **_HEADERS}
        return HttpResponse(_page(), headers=headers)

    def _methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD")


def _page() -> str:
    return render_to_string(
        "backend/api_docs.html",
        {
            "app_name": service_settings.APP_NAME,
            "mount": service_settings.MOUNT_PATH,
            "ui_styles": static(f"{_UI}/swagger-ui.css"),
            "ui_script": static(f"{_UI}/swagger-ui-bundle.js"),
            "icon": static(f"{_UI}/favicon-32x32.png"),
            "styles": static("backend/api-docs/page.css"),
            "script": static("backend/api-docs/page.js"),
        },
    )
