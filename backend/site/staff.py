"""Staff: who may do what in the admin, and as whom the admin asks for them.

Staff users are Django's. Three groups are kept by ``manage.py prepare``: Viewers look, Editors
also add, change and delete objects, files, people and the app's parameters, and call functions,
Administrators may do all that the service's own applications offer. Groups of a deployment's own
may hold any other choice of permissions; superusers also decide who is staff.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, Q
from django.http import HttpRequest

from backend.kernel.principal import MASTER, READ_ONLY_MASTER, Principal

VIEWERS: Final = "Viewers"
EDITORS: Final = "Editors"
ADMINISTRATORS: Final = "Administrators"

OUR_APPS: Final = ("backend", "objects", "functions", "chain", "realtime", "django_celery_beat")

EDITED: Final = frozenset(
    f"objects.{model}"
    for model in (
        *("storedobject", "storedfile", "appconfig"),
        *("user", "session", "role", "installation"),
    )
) | {"functions.function"}
"""The models, as ``app.model``, for which Editors have all permissions."""

CHANGE_OBJECTS: Final = "objects.change_storedobject"


def principal_for(user: Any, permission: str = CHANGE_OBJECTS) -> Principal:
    """As whom a page of the admin calls the door for a staff user.

    The master key for those who have ``permission``, the one that the page's action asks for; the
    read-only master key for other staff, so that the door refuses what a page forgot to.
    Raises ``PermissionDenied`` for those who aren't staff.
    """
    if not (user.is_active and user.is_staff):
        raise PermissionDenied
    return MASTER if user.has_perm(permission) else READ_ONLY_MASTER


def require(request: HttpRequest, *permissions: str) -> None:
    """Raise ``PermissionDenied`` (403) unless the staff user has all of the permissions."""
    if not request.user.is_active or not request.user.has_perms(permissions):
        raise PermissionDenied


def make_groups(offered_models: Iterable[type[Model]]) -> None:
    """Give the three groups exactly their permissions; make those that aren't there.

    ``offered_models`` are the models that are offered as classes (``definitions.registry``).

    May be run at any time and by several processes at once. Members stay members.
    """
    # Models of other applications that are classes: what is in them are objects like others.
    offered = {
        model._meta.label_lower for model in offered_models if model._meta.app_label not in OUR_APPS
    }
    labels = [config.label for config in apps.get_app_configs() if config.label in OUR_APPS]
    ours = Q(content_type__app_label__in=labels) | _of_models(offered)
    edited = _of_models(EDITED | offered)
    viewed = ours & Q(codename__startswith="view_")
    for name, allowed in ((VIEWERS, viewed), (EDITORS, viewed | edited), (ADMINISTRATORS, ours)):
        with transaction.atomic():
            group, _ = Group.objects.get_or_create(name=name)
            group.permissions.set(Permission.objects.filter(allowed))


def _of_models(names: Collection[str]) -> Q:
    """The permissions of these models, each as ``app.model``."""
    permissions = Q(pk__in=())
    for name in sorted(names):
        label, model = name.split(".")
        permissions |= Q(content_type__app_label=label, content_type__model=model)
    return permissions
