"""The project package as an application: its checks, and what it changes in Django."""

from importlib import import_module

from django.apps import AppConfig


class BackendConfig(AppConfig):
    name = "backend"

    def ready(self) -> None:
        from django.core.checks import Tags, register

        from backend.checks import deployment
        from backend.endpoints.middleware import disconnect_connection_signals

        # Tasks that are started in this process go to our broker.
        import_module("backend.celery")
        # ``manage.py check --deploy``.
        register(deployment, Tags.security, deploy=True)
        # Django's own upkeep of connections at every request; pages have a middleware for it.
        disconnect_connection_signals()
