"""The project package as an application: its commands."""

from django.apps import AppConfig


class BackendConfig(AppConfig):
    name = "backend"

    def ready(self) -> None:
        from backend.site import disconnect_connection_signals

        disconnect_connection_signals()
