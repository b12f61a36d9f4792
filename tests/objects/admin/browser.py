"""The admin in headless Chromium, with a staff user who is logged in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import Browser, Page


@contextmanager
def staff_page(
    chromium: Browser, url: str, user: User, *, complaints_matter: bool = True, **options: Any
) -> Iterator[Page]:
    """A page whose cookies are those of the user; what its console complains of is an error.

    Not so without ``complaints_matter``: for tests that provoke complaints.
    """
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    context = chromium.new_context(base_url=url, **options)
    context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": str(session.session_key), "url": url}]
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "dialog",
        lambda dialog: (complaints.append(f"a dialog: {dialog.message}"), dialog.dismiss()),
    )
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text)
            if message.type == "error" and "Failed to load resource" not in message.text
            else None
        ),
    )
    yield page
    context.close()
    assert not (complaints_matter and complaints), complaints


def look(page: Page, name: str) -> None:
    """Keep a picture of the page, in the folder that PAGE_PICTURES names."""
    folder = os.environ.get("PAGE_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
