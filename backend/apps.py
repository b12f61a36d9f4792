"""The project package as an application: its commands."""

from django.apps import AppConfig


class BackendConfig(AppConfig):
    name = "backend"
