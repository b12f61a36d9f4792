"""What ``_Role`` asks of its objects: a name that never changes, and always an access list.

Without a list everybody could write the role, and so become a member of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.kernel.errors import DuplicateValue, IncorrectType, InvalidRoleName, ServiceError
from objects.rules import Change, Rules, TransferredObject
from objects.users import roles
from objects.users.names import check_role_name


class RoleRules(Rules[Change]):
    """The rules of ``_Role``. After every write, the roles that callers hold are read again."""

    def before_create(self, change: Change) -> None:
        check_role_name(change.fields.get("name"))
        _check_list(change.fields.get("ACL"))

    def before_update(self, change: Change) -> None:
        assert change.before is not None
        if "name" in change.fields and change.fields["name"] != change.before.get("name"):
            raise InvalidRoleName("A role's name can't be changed.")
        if "ACL" in change.fields:
            _check_list(change.fields["ACL"])

    def after_create(self, change: Change) -> None:
        roles.changed()

    def after_update(self, change: Change) -> None:
        roles.changed()

    def after_delete(self, change: Change) -> None:
        roles.changed()

    def after_purge(self) -> None:
        roles.changed()

    def before_transfer(self, obj: TransferredObject) -> TransferredObject:
        check_role_name(obj.fields.get("name"))
        _check_list(obj.acl)
        return obj

    def after_transfer(
        self, stored: Sequence[TransferredObject], skipped: Sequence[TransferredObject]
    ) -> None:
        roles.changed()

    def error_for(self, constraint: str) -> ServiceError | None:
        if constraint == "objects_role_name_unique":
            return DuplicateValue("A role with this name exists already.")
        return None


def _check_list(acl: object) -> None:
    if not isinstance(acl, dict) or "__op" in acl:
        raise IncorrectType("ACL is required.")
