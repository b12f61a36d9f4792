"""Callers of the REST face, and users."""

from tests.callers import *  # noqa: F403
