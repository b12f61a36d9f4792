"""How many rows a table has in an instance without data of its own.

A restore refuses an instance with more (``backend.operations.backup.tables``). Rows are data unless
the model says otherwise, beside its fields: by ``fresh_rows = ANY_NUMBER`` for the service's own
bookkeeping, or by the number of rows that a migration makes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from django.db.models import Model

ANY_NUMBER: Final = sys.maxsize

# Of applications that aren't this project's. Accounts of the admin are data, but for the first.
_OTHERS: Final = frozenset({"admin", "auth", "contenttypes", "sessions", "django_celery_beat"})
_TABLES_OF_OTHERS: Final[Mapping[str, int]] = {"auth_user": 1}


def fresh_rows(model: type[Model]) -> int:
    """Return the number of rows up to which the table of a model holds no data."""
    if model._meta.app_label in _OTHERS:
        return _TABLES_OF_OTHERS.get(model._meta.db_table, ANY_NUMBER)
    rows: int = getattr(model, "fresh_rows", 0)
    return rows
