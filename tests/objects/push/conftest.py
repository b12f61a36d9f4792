"""Fixtures for pushes: installations, and what workers do with what is due."""

from __future__ import annotations

from tests.callers import *  # noqa: F403
