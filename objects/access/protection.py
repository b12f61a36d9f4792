"""Fields that a caller may not see, and queries that would reveal them."""

from __future__ import annotations

from collections.abc import Iterable

from backend.kernel.errors import OperationForbidden
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from objects.core.access.acl import protected_fields, protecting_user_fields
from objects.core.access.class_permissions import USER_FIELD_PREFIX
from objects.core.names import OBJECT_ID, ClassName, FieldName
from objects.core.query.tree import (
    AllOf,
    Equals,
    InQuery,
    OrderKey,
    Query,
    RelatedTo,
    Select,
    all_of,
    fields_read,
    order_fields,
    walk,
)
from objects.core.values import pointer
from objects.definitions import registry
from objects.sql.tables import ClassTable

# Fields of an account that only its owner and the master key see.
_OWNERS_FIELDS = {"_User": frozenset({FieldName("authData")})}


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
                inner = registry.find(redirect_target(inner, node.query.redirect_key))
            if inner is None:
                continue
            inner_where = node.query.where
            if isinstance(node, Select):
                inner_where = all_of(inner_where, Equals(node.key, None))
            check_question(principal, inner, inner_where, node.query.order)
        elif isinstance(node, RelatedTo):
            owner = registry.find(node.class_name)
            if owner is not None:
                check_question(principal, owner, Equals((node.key,), None))


def redirect_target(table: ClassTable, key: FieldName) -> ClassName:
    """Return the class that a relation of the class leads to, or the class if it has none."""
    relation = table.schema.fields.get(key)
    if relation is None or relation.kind != "Relation" or not relation.target_class:
        return table.class_name
    return relation.target_class
