"""The application objects."""

from django.apps import AppConfig


class ObjectsConfig(AppConfig):
    name = "objects"
    verbose_name = "Objects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from objects.wiring import wire

        wire(self)
