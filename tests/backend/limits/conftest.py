"""Callers of the REST face, and rules for one test."""

from tests.callers import *  # noqa: F403
from tests.rate_limits import *  # noqa: F403
