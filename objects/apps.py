from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class ObjectsConfig(AppConfig):
    name = "objects"
    verbose_name = "Objects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from objects.access import default_protection
        from objects.changes import capture
        from objects.core.values import set_file_address
        from objects.database.statements import guard_connection
        from objects.files.urls import address_in_value
        from objects.reencryption import encrypted_column
        from objects.users.accounts import second_factor
        from objects.users.models import SecondFactor
        from objects.users.rules.classes import offer_classes

        connection_created.connect(guard_connection)
        default_protection.install()
        offer_classes()
        encrypted_column(SecondFactor, "secret", second_factor.PURPOSE)
        set_file_address(address_in_value)
        post_migrate.connect(capture.install, sender=self)
