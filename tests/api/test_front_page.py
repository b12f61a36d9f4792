"""``/``: what the page of the service links to."""

from __future__ import annotations

import re

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db

# /ready is 503 where no worker runs, and its body is what the link is for.
ANSWERS = {200, 302, 503}


def test_every_link_is_answered_and_the_api_is_only_named() -> None:
    page = Client().get("/").text
    links = re.findall(r'<a href="([^"]+)"', page)
    assert set(links) == {"/api/docs", "/admin/", "/health", "/ready"}
    assert {Client().get(link).status_code for link in links} <= ANSWERS
    assert "<dt>API</dt><dd><code>/api</code></dd>" in page
    assert Client().get("/api").status_code == 403  # which is why it isn't a link


def test_documentation_that_is_switched_off_is_not_linked(settings) -> None:
    settings.SERVICE = {**settings.SERVICE, "API_DOCS": False}
    page = Client().get("/").text
    assert "/api/docs" not in page
