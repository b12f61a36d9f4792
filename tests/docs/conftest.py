"""A running service, for the commands that documents show."""

from tests.callers import fresh_registry, other

__all__ = ["fresh_registry", "other"]
