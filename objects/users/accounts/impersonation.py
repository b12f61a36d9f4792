"""Acting as a user without a session of theirs: for staff who look at what a user sees."""

from __future__ import annotations

from django.db.models import Subquery

from backend.kernel.errors import ObjectNotFound
from backend.kernel.principal import Authority, Principal
from objects.core.names import is_object_id
from objects.database.orm import orm_queries
from objects.users import roles
from objects.users.models import RoleVersion, User


def as_user(user_id: str) -> tuple[Principal, str]:
    """The principal that a session of this user would have, and the user's name.

    Callers have checked the rights. Raises ``ObjectNotFound``.
    """
    version = RoleVersion.objects.filter(pk=1).values("version")
    with orm_queries():
        users = User.objects.filter(pk=user_id if is_object_id(user_id) else None)
        row = users.values_list("username", Subquery(version)).first()
    if row is None:
        raise ObjectNotFound("There is no such user.")
    name, version_now = row
    held = roles.held_by(user_id, str(version_now or 0))
    return Principal(Authority.CLIENT, user_id=user_id, roles=held), name or user_id
