"""Expressions of PostgreSQL that queries of Django's ORM need and Django doesn't have."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import BigIntegerField, DateTimeField, Func, Value
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Greatest, Now

from objects.definitions.models import VERSION_SEQUENCE


def now_in_milliseconds() -> Func:
    """Return the statement's time in whole milliseconds, the precision of wire dates."""
    return Func(Value("milliseconds"), Now(), function="date_trunc", output_field=DateTimeField())


def touched() -> Greatest:
    """Return the ``updated_at`` of a row that is being changed: it never goes back."""
    return Greatest("updated_at", now_in_milliseconds())


def in_seconds(seconds: float) -> CombinedExpression:
    """Return the moment so many seconds after the statement's time."""
    return Now() + timedelta(seconds=seconds)


def next_version() -> Func:
    """Return a new number of the sequence of versions, from which no number comes twice, not even
    after a write that was rolled back."""
    return Func(
        template=f"nextval('{VERSION_SEQUENCE}')",
        output_field=BigIntegerField(),
    )
