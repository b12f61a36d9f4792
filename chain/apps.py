"""The application chain."""

from django.apps import AppConfig


class ChainConfig(AppConfig):
    name = "chain"
    verbose_name = "Chain"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from chain.models import Provider, Wallet
        from chain.purposes import PROVIDER, WALLET
        from chain.records.classes import offer_classes
        from objects.reencryption import encrypted_column

        offer_classes()
        encrypted_column(Provider, "url", PROVIDER)
        encrypted_column(Provider, "socket_url", PROVIDER)
        encrypted_column(Wallet, "key", WALLET)
