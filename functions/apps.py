"""The application of server functions: finds what a deployment has written."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules

from backend.settings.conf import service_settings
from functions.runtime.modules import load


class FunctionsConfig(AppConfig):
    name = "functions"

    def ready(self) -> None:
        import_module("functions.jobs.classes").offer_classes()
        import_module("functions.checks")
        import_module("functions.webhooks.class_hooks")
        import_module("functions.library")
        # A ``functions.py`` in any installed app, and the modules that the deployment names.
        autodiscover_modules("functions")
        for module in service_settings.CLOUD_MODULES:
            load(module)
