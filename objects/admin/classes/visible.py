"""The classes that a staff user may see objects of."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from backend.site.staff import OUR_APPS
from objects.admin.staff_access import permission
from objects.definitions import registry
from objects.definitions.models import ObjectClass


def visible_classes(user: Any) -> QuerySet[ObjectClass]:
    """Return the classes whose objects the staff user may see, with no more than their names."""
    classes = ObjectClass.objects.only("name")
    models = {name: user.has_perm(permission("view", name)) for name in registry.model_tables()}
    if user.has_perm(permission("view", None)):
        hidden = [name for name, is_visible in models.items() if not is_visible]
        return classes.exclude(name__in=hidden)
    return classes.filter(name__in=[name for name, is_visible in models.items() if is_visible])


def without_built_in(classes: QuerySet[ObjectClass]) -> QuerySet[ObjectClass]:
    """Leave out the classes that every app has, which have pages of their own."""
    built_in = [
        name
        for name in registry.model_tables()
        if (model := registry.model_of(name)) is not None and model._meta.app_label in OUR_APPS
    ]
    return classes.exclude(name__startswith="_").exclude(name__in=built_in)
