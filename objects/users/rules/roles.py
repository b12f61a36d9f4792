"""What ``_Role`` asks of its objects: a name that never changes, and always an access list.

Without a list everybody could write the role, and so become a member of it.
"""

from __future__ import annotations

from backend.kernel.errors import DuplicateValue, IncorrectType, InvalidRoleName, ServiceError
from objects.rules import Change, Rules
from objects.users import roles
from objects.users.names import check_role_name


class RoleRules(Rules):
    """See the module. Every write makes the roles that callers hold be read anew."""

    def creating(self, change: Change) -> None:
        check_role_name(change.fields.get("name"))
        _check_list(change.fields.get("ACL"))

    def updating(self, change: Change) -> None:
        assert change.before is not None
        if "name" in change.fields and change.fields["name"] != change.before.get("name"):
            raise InvalidRoleName("A role's name can't be changed.")
        if "ACL" in change.fields:
            _check_list(change.fields["ACL"])

    def created(self, change: Change) -> None:
        roles.changed()

    def updated(self, change: Change) -> None:
        roles.changed()

    def deleted(self, change: Change) -> None:
        roles.changed()

    def purged(self) -> None:
        roles.changed()

    def refusal(self, constraint: str) -> ServiceError | None:
        if constraint == "objects_role_name_unique":
            return DuplicateValue("A role with this name exists already.")
        return None


def _check_list(acl: object) -> None:
    if not isinstance(acl, dict) or "__op" in acl:
        raise IncorrectType("ACL is required.")
