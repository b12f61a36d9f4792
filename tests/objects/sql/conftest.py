"""A world of objects in a PostgreSQL connection of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

from tests.objects.sql.world import World


@pytest.fixture(scope="package")
def world() -> Iterator[World]:
    """Temporary tables, so nothing is left behind and no other connection sees them."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        yield World(connection)
