"""A running service, for the commands that documents show."""

from tests.callers import emptied, fresh_registry, other

__all__ = ["emptied", "fresh_registry", "other"]
