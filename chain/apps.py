"""The application chain."""

from django.apps import AppConfig


class ChainConfig(AppConfig):
    name = "chain"
    verbose_name = "Chain"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from chain.wiring import wire

        wire()
