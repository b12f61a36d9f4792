"""Columns of model-backed classes. An object may lack any field, so each of them may be null."""

from __future__ import annotations

from typing import Any

from django.db import models


def text_column(**options: Any) -> models.TextField:
    """Text that is compared by its code points, as clients' strings are."""
    return models.TextField(null=True, blank=True, db_collation="C", **options)


def number_column(**options: Any) -> models.BigIntegerField:
    """A whole number."""
    return models.BigIntegerField(null=True, blank=True, **options)


def moment_column(**options: Any) -> models.DateTimeField:
    """A moment with its time zone."""
    return models.DateTimeField(null=True, blank=True, **options)
