"""Callers of the REST face for the tests of the API document."""

from tests.callers import application, client, emptied, fresh_registry, master, other, reader

__all__ = ["application", "client", "emptied", "fresh_registry", "master", "other", "reader"]
