"""Staff users of each kind, logged in."""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.test import Client

from backend.site.staff import make_groups
from objects.definitions.registry import offered_models


def staff_user(group: str | None) -> User:
    """A staff user in one of the groups; a superuser for None."""
    if group is None:
        return User.objects.create_superuser("root")
    make_groups(offered_models())
    user = User.objects.create_user(group.lower(), is_staff=True)
    user.groups.add(Group.objects.get(name=group))
    return user


def logged_in(group: str | None = None) -> Client:
    client = Client()
    client.force_login(staff_user(group))
    return client
