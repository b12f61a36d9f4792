"""Headless Chromium, for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections
from playwright.sync_api import Browser, expect, sync_playwright

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 30_000  # milliseconds; a machine may be busy with other things
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium. Django is configured so that the thread of its event loop may use the database, by
    connections of its own, which stay open when the loop is gone."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        # What is expected of pages holds for the whole process; the default is five seconds.
        expect.set_options(timeout=PATIENCE)
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        try:
            yield launched
        finally:
            connections.close_all()
            launched.close()
