"""These tests need no Django."""

from tests.pure import *  # noqa: F403
