"""Django's admin with a site of our own."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class OwnAdminConfig(AdminConfig):
    default = False
    default_site = "backend.site.model_admin.Site"
