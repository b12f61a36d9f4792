"""Who may do what to objects: the one place that decides.

The decisions themselves are pure (``core.access``). Here they are bound to a principal and a
class, and come out in one of two forms: an error, or a *constraint* that is joined to the
client's query and is compiled (or matched) like any other. What a caller may not see is therefore
never fetched.

Read ``check_class`` for class-level permissions and pointer permissions, ``readable`` and
``writable`` for the object's ACL on top of them, ``hidden_fields`` and ``check_question`` for
protected fields. The first three add their reasons to a list that the caller passes (``reasons``).
"""

from __future__ import annotations

from collections.abc import Iterable

from backend.kernel.errors import (
    InvalidSessionToken,
    ObjectNotFound,
    OperationForbidden,
    SessionMissing,
)
from backend.kernel.json_types import Json
from backend.kernel.principal import EVERYBODY, Principal
from backend.kernel.texts.shown import shown
from backend.settings.conf import service_settings
from objects import triggers
from objects.core.access.acl import (
    Allowed,
    AllowedThrough,
    NeedsAuthentication,
    decide,
    protected_fields,
    protecting_user_fields,
)
from objects.core.access.class_permissions import USER_FIELD_PREFIX, Action
from objects.core.access.reasons import Reason, Rule
from objects.core.names import OBJECT_ID, ClassName, FieldName, ObjectId, check_class_name
from objects.core.query.tree import (
    AllOf,
    AnyOf,
    Equals,
    Everything,
    Exists,
    InQuery,
    Nothing,
    OrderKey,
    Query,
    ReadableBy,
    RelatedTo,
    Select,
    WritableBy,
    all_of,
    fields_read,
    order_fields,
    walk,
)
from objects.core.values import pointer
from objects.definitions import registry
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
# Fields of an account that only its owner and the master key see.
_NO_FIELDS: frozenset[FieldName] = frozenset()
_OWNERS_FIELDS = {"_User": frozenset({FieldName("authData")})}
_READ_ACTIONS = frozenset({"find", "get", "count"})


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
        if action in _READ_ACTIONS or principal.may_write_as_master:
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


# -- Protected fields ---------------------------------------------------------------------------


def hidden_fields(
    principal: Principal, table: ClassTable, obj: dict[str, Json] | None = None
) -> frozenset[FieldName]:
    """Return the fields that the caller may not see: of any object, or of this one.

    For an object, ``userField:F`` groups count too, when its field F names the caller.
    """
    if principal.is_master or (obj is not None and _is_own_account(principal, table, obj)):
        return frozenset()
    always = always_hidden(table)
    permissions = table.schema.permissions
    if not permissions.protected_fields:
        return always
    return always | protected_fields(permissions, protection_groups(principal, table, obj))


def always_hidden(table: ClassTable) -> frozenset[FieldName]:
    """Return the fields hidden from all but the master key, regardless of permissions.

    The owner of an account sees those of the account.
    """
    return _OWNERS_FIELDS.get(table.class_name, table.hidden)


def protection_groups(
    principal: Principal, table: ClassTable, obj: dict[str, Json] | None = None
) -> set[str]:
    """Return the caller's groups of ``protectedFields``, for any object or for this one."""
    groups = set(principal.acl_ids)
    if principal.user_id is not None:
        groups.add("authenticated")
        if obj is not None:
            user = pointer("_User", principal.user_id)
            for name in protecting_user_fields(table.schema.permissions):
                value = obj.get(name)
                if value == user or (isinstance(value, list) and user in value):
                    groups.add(f"userField:{name}")
    return groups


def _is_own_account(principal: Principal, table: ClassTable, obj: dict[str, Json]) -> bool:
    return table.class_name == "_User" and obj.get("objectId") == principal.user_id


def _is_about_own_account(principal: Principal, table: ClassTable, where: Query) -> bool:
    """Return whether only the caller's own account, which hides nothing, can satisfy a query."""
    if table.class_name != "_User" or principal.user_id is None:
        return False
    parts = where.parts if isinstance(where, AllOf) else (where,)
    return Equals((OBJECT_ID,), principal.user_id) in parts


def hides_by_object(principal: Principal, table: ClassTable) -> bool:
    """Return whether what is hidden from the caller differs from object to object."""
    if principal.user_id is None:
        return False
    return table.class_name == "_User" or bool(protecting_user_fields(table.schema.permissions))


def fields_hidden_somewhere(principal: Principal, table: ClassTable) -> frozenset[FieldName]:
    """Return the fields that the caller may not see in at least one object of the class."""
    hidden = hidden_fields(principal, table)
    if not hides_by_object(principal, table):
        return hidden
    protected = table.schema.permissions.protected_fields
    if any(group in protected for group in (*principal.acl_ids, "authenticated")):
        return hidden  # being named by an object can only show more
    return hidden.union(
        *(names for group, names in protected.items() if group.startswith(USER_FIELD_PREFIX))
    )


def check_question(
    principal: Principal, table: ClassTable, where: Query, order: Iterable[OrderKey] = ()
) -> None:
    """Refuse a query whose response would reveal the value of a protected field.

    Sub-queries are checked for their own classes, at any depth. Raises ``OperationForbidden``.
    """
    if principal.is_master:
        return
    hidden = fields_hidden_somewhere(principal, table)
    if hidden and not _is_about_own_account(principal, table, where):
        used = fields_read(where)
        named = sorted(hidden & used) or (sorted(hidden) if "*" in used else [])
        sorting = sorted(hidden & order_fields(tuple(order)))
        if named or sorting:
            asks = f"query {named[0]}" if named else f"sort by {sorting[0]}"
            raise OperationForbidden(
                f"This user is not allowed to {asks} on class {table.class_name}"
            )
    for node in walk(where):
        if isinstance(node, InQuery | Select):
            inner = registry.find(node.query.class_name)
            if inner is not None and node.query.redirect_key is not None:
                inner = registry.find(_target(inner, node.query.redirect_key))
            if inner is None:
                continue
            told_by = node.query.where
            if isinstance(node, Select):
                told_by = all_of(told_by, Equals(node.key, None))
            check_question(principal, inner, told_by, node.query.order)
        elif isinstance(node, RelatedTo):
            owner = registry.find(node.class_name)
            if owner is not None:
                check_question(principal, owner, Equals((node.key,), None))


def _target(table: ClassTable, key: FieldName) -> ClassName:
    """Return the class that a relation of the class leads to, or the class if it has none."""
    relation = table.schema.fields.get(key)
    if relation is None or relation.kind != "Relation" or not relation.target_class:
        return table.class_name
    return relation.target_class


# -- What sub-queries may reach -------------------------------------------------------------------


class Scope:
    """The classes that one statement touches, under the rights of one caller.

    Handed to the compiler, which asks for the table of each sub-query's class, and to the store,
    which checks the versions of all of them. ``checked`` are further classes by whose permissions
    the statement was allowed.
    """

    def __init__(self, principal: Principal, *checked: ClassTable) -> None:
        self._principal = principal
        self._checked = checked
        self.is_limited = not principal.is_master
        """Whether a statement under these rights has a client's time only."""
        self._tables: dict[str, tuple[ClassTable, Query]] = {}

    def table(self, class_name: ClassName) -> tuple[ClassTable, Query] | None:
        """Return the class's table, and the condition under which the caller may read its objects.

        None if there is no such class and the caller may know that. Raises
        ``OperationForbidden`` if there is none, or the caller may not search it.
        """
        cached = self._tables.get(class_name)
        if cached is None:
            table = registry.find(class_name)
            if table is None:
                check_missing_class(self._principal, class_name)
                return None
            condition = readable(self._principal, table, "find")
            cached = table, all_of(condition, triggers.narrowing(self._principal, class_name))
            self._tables[class_name] = cached
        return cached

    def redirected(self, class_name: ClassName, key: FieldName) -> ClassName:
        """Return the class that a relation of the class leads to, or the class if it has none.

        Raises ``OperationForbidden`` if the caller may not search the class or ask for the field:
        the results show where it leads.
        """
        source = self.table(class_name)
        target = class_name if source is None else _target(source[0], key)
        if source is not None and target != class_name:
            check_question(self._principal, source[0], Exists((key,), True))
        return target

    def others(self, table: ClassTable) -> list[ClassTable]:
        """Return the classes that the statement depends on in addition to its own."""
        tables = {other.class_id: other for other in self._checked}
        tables.update((other.class_id, other) for other, _ in self._tables.values())
        tables.pop(table.class_id, None)
        return [*tables.values()]
