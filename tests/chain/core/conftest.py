"""These tests need no Django."""

from tests.pure_fixtures import *  # noqa: F403
