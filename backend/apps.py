"""The project package as an application: its commands and checks."""

from django.apps import AppConfig


class BackendConfig(AppConfig):
    name = "backend"

    def ready(self) -> None:
        from backend import checks  # noqa: F401 (registers them)
        from backend.site import disconnect_connection_signals

        disconnect_connection_signals()
