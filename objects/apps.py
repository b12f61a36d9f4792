from django.apps import AppConfig


class ObjectsConfig(AppConfig):
    name = "objects"
    verbose_name = "Objects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from objects.core.values import set_file_address
        from objects.files.urls import address_in_value
        from objects.reencryption import encrypted_column
        from objects.users import second_factor
        from objects.users.classes import offer_classes
        from objects.users.models import SecondFactor

        offer_classes()
        encrypted_column(SecondFactor, "secret", second_factor.PURPOSE)
        set_file_address(address_in_value)
