from django.apps import AppConfig


class ObjectsConfig(AppConfig):
    name = "objects"
    verbose_name = "Objects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from objects.core.values import set_file_address
        from objects.files.urls import address_in_value
        from objects.users.classes import offer_classes

        offer_classes()
        set_file_address(address_in_value)
