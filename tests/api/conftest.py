"""Callers of the REST face."""

from tests.callers import *  # noqa: F403
