"""Addresses outside the mount path, except ``/health``, ``/ready`` and ``/metrics``, which
``backend.site.Probes`` answers. What is below ``MOUNT_PATH`` is ``backend.api.urls``.
"""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from backend.front_page import favicon, front_page

urlpatterns = [
    path("", front_page, name="front_page"),
    path("favicon.ico", favicon, name="favicon"),
    path("admin/", admin.site.urls),
]

handler400 = "backend.api.outside.bad_request"
handler404 = "backend.api.outside.not_found"
handler500 = "backend.api.outside.server_error"
