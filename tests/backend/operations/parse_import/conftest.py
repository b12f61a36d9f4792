"""Callers of the REST API for tests of imports."""

from tests.callers import client, fresh_registry, master

__all__ = ["client", "fresh_registry", "master"]
