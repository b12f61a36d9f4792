"""Feature flags in the admin."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin

from backend.site.model_admin import ModelAdmin
from functions.feature_flags.features import variable
from functions.models import FeatureFlag


@admin.register(FeatureFlag)
class FeatureFlagAdmin(ModelAdmin):
    """The list of flags, each with the environment's override, which takes precedence."""

    section = "Server code"
    icon = "flag"
    list_display = ("name", "on", "rollout", "environment", "description", "updated_at")
    search_fields = ("name", "description")
    readonly_fields = ("environment", "updated_at")
    fields = ("name", "description", "on", "rollout", "environment", "updated_at")

    @admin.display(description="environment")
    def environment(self, flag: FeatureFlag) -> str:
        name = variable(flag.name)
        override = settings.FEATURE_OVERRIDES.get(name)
        if override is None:
            return "-"
        on, rollout = override
        word = "off" if not on else "on" if rollout is None else f"{rollout}%"
        return f"{name}={word}"
