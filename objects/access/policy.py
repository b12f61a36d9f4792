"""Who may do what to objects: the one place that decides.

The decisions themselves are pure (``core.access``). Here they are bound to a principal and a
class, and come out in one of two forms: an error, or a *constraint* that is joined to the
client's query and is compiled (or matched) like any other. What a caller may not see is therefore
never fetched.

Read ``check_class`` for class-level permissions and pointer permissions, ``readable`` and
``writable`` for the object's ACL on top of them. They add their reasons to a list that the caller
passes (``reasons``). ``access.protection`` hides fields, ``access.scope`` is for subqueries.
"""

from __future__ import annotations

from collections.abc import Iterable

from backend.kernel.errors import (
    InvalidSessionToken,
    ObjectNotFound,
    OperationForbidden,
    SessionMissing,
)
from backend.kernel.principal import EVERYBODY, Principal
from backend.kernel.texts.shown import shown
from backend.settings.conf import service_settings
from objects.core.access.acl import Allowed, AllowedThrough, NeedsAuthentication, decide
from objects.core.access.class_permissions import READ_ACTIONS, Action
from objects.core.access.reasons import Reason, Rule
from objects.core.names import ClassName, FieldName, ObjectId, check_class_name
from objects.core.query.tree import (
    AnyOf,
    Equals,
    Everything,
    Nothing,
    Query,
    ReadableBy,
    WritableBy,
    all_of,
)
from objects.core.values import pointer
from objects.sql.tables import ClassTable

# The service's internal classes: their CLP doesn't matter, only the master key has access.
MASTER_ONLY_CLASSES = frozenset(
    {
        "_JobStatus",
        "_PushStatus",
        "_Hooks",
        "_GlobalConfig",
        "_GraphQLConfig",
        "_JobSchedule",
        "_Audience",
        "_Idempotency",
    }
)
_NO_FIELDS: frozenset[FieldName] = frozenset()


def check_missing_class(principal: Principal, class_name: ClassName) -> None:
    """Whether a class that isn't there reads as an empty one; else ``OperationForbidden``.

    It does for the master key, and for clients where they may create classes.
    """
    check_class_name(class_name)
    if not (principal.is_master or service_settings.ALLOW_CLIENT_CLASS_CREATION):
        raise missing_class(class_name)


def missing_class(class_name: ClassName) -> OperationForbidden:
    """Return the error for a class that doesn't exist and that the client may not create."""
    return OperationForbidden(
        f"This user is not allowed to access non-existent class: {class_name}"
    )


def check_chosen_id(principal: Principal, class_name: ClassName) -> None:
    """Raise ``OperationForbidden`` if the caller may not choose the id of a new object.

    Access lists and memberships trust the ids of users and roles, also of deleted ones.
    """
    if class_name in ("_User", "_Role") and not principal.may_write_as_master:
        raise OperationForbidden(f"Clients aren't allowed to choose an objectId of {class_name}.")


def check_class(
    principal: Principal,
    table: ClassTable,
    action: Action,
    *,
    creating: bool = False,
    reasons: list[Reason] | None = None,
) -> Query:
    """Apply class-level permissions; return the condition that objects have to meet.

    ``creating`` belongs to ``addField``: a new object can't be reached through its pointers.
    Raises ``OperationForbidden``, or ``ObjectNotFound`` where logging in would help, as Parse does.
    """
    if principal.is_master:
        if action in READ_ACTIONS or principal.may_write_as_master:
            _add_reason(reasons, "master key", action, True)
            return Everything()
        _add_reason(reasons, "read-only master key", action, False)
        raise OperationForbidden(
            f"read-only masterKey isn't allowed to perform the {action} operation."
        )
    class_name = table.class_name
    if class_name in MASTER_ONLY_CLASSES:
        _add_reason(reasons, "class of the service", action, False)
        raise OperationForbidden(
            f"Clients aren't allowed to perform the {action} operation on the {class_name}"
            " collection."
        )
    own = _own(principal, class_name, action, reasons)
    decision = decide(
        table.schema.permissions,
        action,
        principal.acl_ids,
        principal.user_id is not None,
        creating=creating,
    )
    if isinstance(decision, Allowed):
        _add_reason(reasons, "class permissions", action, True, decision.because)
        return own
    if isinstance(decision, AllowedThrough):
        named = _names_user(principal, decision.pointer_fields)
        _add_reason(
            reasons, "pointer permissions", action, None, *decision.pointer_fields, condition=named
        )
        return all_of(own, named)
    if isinstance(decision, NeedsAuthentication):
        _add_reason(reasons, "class permissions", action, False, "requiresAuthentication")
        raise ObjectNotFound("Permission denied, user needs to be authenticated.")
    _add_reason(reasons, "class permissions", action, False)
    raise OperationForbidden(f"Permission denied for action {action} on class {class_name}.")


def _add_reason(
    reasons: list[Reason] | None,
    rule: Rule,
    action: Action,
    allows: bool | None,
    *because: str,
    condition: Query | None = None,
) -> None:
    if reasons is not None:
        reasons.append(Reason(rule, action, allows, because, condition))


def _own(
    principal: Principal, class_name: ClassName, action: Action, reasons: list[Reason] | None
) -> Query:
    """Return the condition that the classes of people add for everybody but the master key."""
    if class_name == "_Session":
        # Users see, change and end their own sessions; access lists don't apply.
        if principal.user_id is None:
            _add_reason(reasons, "sessions", action, False)
            writes = action in ("create", "update", "addField")
            raise InvalidSessionToken(
                "Session token required." if writes else "Invalid session token"
            )
        if action != "create":
            own = Equals((FieldName("user"),), pointer("_User", principal.user_id))
            _add_reason(reasons, "sessions", action, None, condition=own)
            return own
    elif class_name == "_Installation" and action in ("find", "count", "delete"):
        _add_reason(reasons, "installations", action, False)
        raise OperationForbidden(
            f"Clients aren't allowed to perform the {action} operation on the installation"
            " collection."
        )
    return Everything()


def _listed(
    principal: Principal,
    class_name: ClassName,
    action: Action,
    object_id: ObjectId | None,
    reasons: list[Reason] | None,
) -> Query:
    """Return the condition of access lists on objects that the caller changes or deletes.

    Accounts of other users have to name the caller or one of the caller's roles: a list that
    permits it to everybody doesn't count, and neither does an account without one.
    """
    if class_name != "_User":
        return WritableBy(principal.acl_ids)
    if principal.user_id is None:
        _add_reason(reasons, "own account", action, False)
        raise refused_account(principal, action, object_id)
    if object_id == principal.user_id:
        _add_reason(reasons, "own account", action, True)
        return WritableBy(principal.acl_ids)
    return WritableBy(principal.acl_ids - {EVERYBODY}, is_named=True)


def refused_account(
    principal: Principal, action: Action, object_id: ObjectId | None
) -> SessionMissing:
    """Return the error for a change of an account that its caller has no right to."""
    if principal.user_id is not None:
        return SessionMissing("Insufficient auth.")
    if action == "delete":
        return SessionMissing("Insufficient auth to delete user")
    return SessionMissing(f"Cannot modify user {shown(object_id)}.")


def _names_user(principal: Principal, fields: Iterable[FieldName]) -> Query:
    if principal.user_id is None:
        return Nothing()
    user = pointer("_User", principal.user_id)
    parts = tuple(Equals((name,), user) for name in fields)
    return parts[0] if len(parts) == 1 else AnyOf(parts)


def read_action(class_name: ClassName, where: Query) -> Action:
    """Return ``get`` for a query by an object's id alone, as with Parse; else ``find``.

    SDKs get an object by such a query. Clients query no installations, not even so.
    """
    if class_name == "_Installation":
        return "find"
    if isinstance(where, Equals) and where.path == ("objectId",) and isinstance(where.value, str):
        return "get"
    return "find"


def readable(
    principal: Principal, table: ClassTable, action: Action, *, reasons: list[Reason] | None = None
) -> Query:
    """Return the condition under which the caller may read an object of the class."""
    return all_of(*reading(principal, table, action, reasons=reasons))


def reading(
    principal: Principal, table: ClassTable, action: Action, *, reasons: list[Reason] | None = None
) -> tuple[Query, Query]:
    """Return the two conditions of ``readable``: that of the class and that of access lists.

    The second is ``Everything`` where access lists don't apply. Live queries test one object for
    many callers, most of whom differ in the second condition only.
    """
    condition = check_class(principal, table, action, reasons=reasons)
    if principal.is_master:
        return condition, Everything()
    listed = ReadableBy(principal.acl_ids)
    _add_reason(reasons, "access list", action, None, condition=listed)
    return condition, listed


def writable(
    principal: Principal,
    table: ClassTable,
    action: Action,
    object_id: ObjectId | None = None,
    *,
    reasons: list[Reason] | None = None,
) -> Query:
    """Return the condition under which the caller may change or delete this object of the class."""
    condition = check_class(principal, table, action, reasons=reasons)
    if principal.is_master:
        return condition
    listed = _listed(principal, table.class_name, action, object_id, reasons)
    _add_reason(reasons, "access list", action, None, condition=listed)
    return all_of(condition, listed)
