"""A statement that PostgreSQL finds too complex is the client's error, in any request."""

from __future__ import annotations

import pytest

from backend.kernel.errors import InvalidQuery
from objects.database.statements import fetch

pytestmark = pytest.mark.django_db


def test_a_statement_that_is_nested_too_deeply_is_an_invalid_query():
    with pytest.raises(InvalidQuery, match="nested too deeply or has too many parts"):
        fetch("SELECT " + "+".join(["now()::text::int"] * 50_000), (), prepare=False)
