"""Addresses outside the mount path, except ``/health``, ``/ready`` and ``/metrics``, which
``backend.endpoints.middleware.Probes`` answers. What is below ``MOUNT_PATH`` is
``backend.rest_urls``.
"""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from backend.endpoints.front_page import favicon, front_page

urlpatterns = [
    path("", front_page, name="front_page"),
    path("favicon.ico", favicon, name="favicon"),
    path("admin/", admin.site.urls),
]

handler400 = "backend.http.edge.outside_mount.bad_request"
handler404 = "backend.http.edge.outside_mount.not_found"
handler500 = "backend.http.edge.outside_mount.server_error"
