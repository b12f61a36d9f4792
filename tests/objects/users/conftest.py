"""Callers of the REST face, users, and their emails."""

from tests.callers import *  # noqa: F403
from tests.mailbox import *  # noqa: F403
