from django.apps import AppConfig


class ObjectsConfig(AppConfig):
    name = "objects"
    verbose_name = "Objects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from objects.users.classes import offer_classes

        offer_classes()
