"""Emails that the service has sent, for tests of mail.

Tasks run in the caller's thread as soon as a change is committed; Django keeps what would be sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest

__all__ = ["postbox", "verifying"]

_T = TypeVar("_T")


@dataclass
class Postbox:
    """What was sent, and how to wait until it is."""

    capture: Callable[..., Any]

    @property
    def letters(self) -> list[Any]:
        from django.core import mail

        return mail.outbox

    def after(self, action: Callable[[], _T]) -> _T:
        """Do something whose transaction is the test's own, and what follows its commit."""
        with self.capture(execute=True):
            return action()

    def last_link(self) -> str:
        """The link in the newest email, without scheme and host."""
        match = re.search(r"https?://\S+", self.letters[-1].body)
        assert match is not None
        parts = urlsplit(match[0])
        return f"{parts.path}?{parts.query}"

    def last_token(self) -> str:
        return parse_qs(self.last_link().partition("?")[2])["token"][0]


@pytest.fixture
def postbox(django_capture_on_commit_callbacks: Any) -> Iterator[Postbox]:
    """The emails of this test."""
    from backend.celery import app

    before = app.conf.task_always_eager
    app.conf.task_always_eager = True
    yield Postbox(django_capture_on_commit_callbacks)
    app.conf.task_always_eager = before


@pytest.fixture
def verifying(settings: Any) -> None:
    """Addresses have to be verified."""
    settings.SERVICE = {**settings.SERVICE, "VERIFY_EMAIL": True}
