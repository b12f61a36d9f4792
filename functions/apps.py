"""The application of server functions: finds what a deployment has written."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules

from backend.settings.conf import service_settings


class FunctionsConfig(AppConfig):
    name = "functions"

    def ready(self) -> None:
        from functions.runtime.modules import load
        from functions.wiring import wire

        wire()
        # A ``functions.py`` in any installed app, and the modules that the deployment names.
        autodiscover_modules("functions")
        for module in service_settings.CLOUD_MODULES:
            load(module)
