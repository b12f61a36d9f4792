"""The favourite classes of staff users, which are at the beginning of their sidebar."""

from __future__ import annotations

from typing import Any, Final

from backend.kernel.errors import OperationForbidden
from objects.core.names import ClassName
from objects.database.orm import orm_queries
from objects.staff.models import FavouriteClass

MOST: Final = 50
"""Favourites of a staff user."""


@orm_queries()
def favourites(user: Any) -> list[str]:
    """Return the names of the staff user's favourites, sorted. Their classes may be gone."""
    rows = FavouriteClass.objects.filter(user=user).order_by("class_name")
    return list(rows.values_list("class_name", flat=True)[:MOST])


@orm_queries()
def add(user: Any, class_name: ClassName) -> None:
    """Make the class a favourite. Raises ``OperationForbidden`` if the staff user has too many."""
    if FavouriteClass.objects.filter(user=user).count() >= MOST:
        raise OperationForbidden(f"You have {MOST} favourite classes: remove one first.")
    FavouriteClass.objects.bulk_create(
        [FavouriteClass(user=user, class_name=class_name)], ignore_conflicts=True
    )


@orm_queries()
def remove(user: Any, class_name: ClassName) -> None:
    """Make the class a favourite no more."""
    FavouriteClass.objects.filter(user=user, class_name=class_name).delete()
