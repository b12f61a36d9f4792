"""Connections beside Django's."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from backend.kernel.connections import postgres

pytestmark = pytest.mark.django_db


def test_it_has_the_options_of_the_address_and_its_own_patience(monkeypatch: Any):
    options = settings.DATABASES["default"]["OPTIONS"]
    of_address = "-c search_path=elsewhere -c statement_timeout=1"
    monkeypatch.setitem(options, "options", of_address)
    with postgres.connect(2, {"work_mem": "1MB"}) as connection:
        row = connection.execute(
            "SELECT current_setting('search_path'), current_setting('statement_timeout'),"
            " current_setting('work_mem')"
        ).fetchone()
    assert row == ("elsewhere", "2s", "1MB")
