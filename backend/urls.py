"""Addresses outside the mount path. What is below ``MOUNT_PATH`` is ``backend.api.urls``."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from backend.api.health import health, ready
from backend.api.metrics import metrics
from backend.front_page import favicon, front_page

urlpatterns = [
    path("", front_page, name="front_page"),
    path("favicon.ico", favicon, name="favicon"),
    path("admin/", admin.site.urls),
    path("health", health, name="health"),
    path("ready", ready, name="ready"),
    path("metrics", metrics, name="metrics"),
]

handler400 = "backend.api.outside.bad_request"
handler404 = "backend.api.outside.not_found"
handler500 = "backend.api.outside.server_error"
