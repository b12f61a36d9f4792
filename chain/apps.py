"""The application chain."""

from django.apps import AppConfig


class ChainConfig(AppConfig):
    name = "chain"
