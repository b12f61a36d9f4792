from django.apps import AppConfig


class ObjectsConfig(AppConfig):
    name = "objects"
    verbose_name = "Objects"
    default_auto_field = "django.db.models.BigAutoField"
