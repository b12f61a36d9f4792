"""The application functions."""

from django.apps import AppConfig


class FunctionsConfig(AppConfig):
    name = "functions"
