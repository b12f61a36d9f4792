"""The project package as an application: its commands and checks."""

from django.apps import AppConfig


class BackendConfig(AppConfig):
    name = "backend"

    def ready(self) -> None:
        # Registered; and tasks that are started here go to our broker.
        from backend import celery, checks  # noqa: F401
        from backend.endpoints.middleware import disconnect_connection_signals

        disconnect_connection_signals()
