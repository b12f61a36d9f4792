"""What a caller may see of the objects of a live query.

``bind`` evaluates the policy once for a caller and a class. The ``Access`` that it returns decides
for each object without a database whether it may be read, and which of its fields. It is valid for
one version of the class and one principal; its holder binds again when either changes.

``bind`` may read the database and run a deployment's code (``before_find``): call it in a thread.
An ``Access`` only computes.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Final

from backend.kernel.errors import InvalidQuery, InvalidSessionToken, OperationForbidden
from backend.kernel.json_types import Wire
from backend.kernel.principal import Principal
from objects import triggers
from objects.access import policy, protection
from objects.core.access.class_permissions import Action
from objects.core.names import SESSION, USER, ClassName, FieldPath
from objects.core.query.predicate import Predicate, predicate
from objects.core.query.tree import (
    Everything,
    Exists,
    InQuery,
    Nothing,
    Query,
    RelatedTo,
    Select,
    all_of,
    fields_read,
    walk,
)
from objects.definitions import registry
from objects.sql.tables import ClassTable

_NOTHING_HIDDEN: Final[frozenset[str]] = frozenset()
_UNSENT_OF_USERS: Final = frozenset({"authData"})


@dataclass(frozen=True, slots=True)
class Access:
    """What one caller may see of the objects of a class, as long as its ``version`` is the same.

    Callers with equal ``rights`` may read the same objects and see the same fields, except for
    the objects' access lists, which are compared with ``acl_ids`` (None: not compared, for the
    master key). ``version`` is 0 for a class that doesn't exist. ``condition`` is the query of
    ``allows``.
    """

    class_name: ClassName
    version: int
    rights: Hashable
    acl_ids: frozenset[str] | None
    condition: Query
    principal: Principal
    _table: ClassTable | None
    _allows: Predicate
    _acl_allows: Predicate
    _hidden: frozenset[str]
    _hides_by_object: bool

    @property
    def key(self) -> Hashable:
        """A key that is equal for callers who see the same, access lists included."""
        return self.rights, self.acl_ids

    def allows(self, obj: Wire) -> bool:
        """Whether the class's permissions and triggers allow reading the object."""
        return self._allows(obj)

    def acl_allows(self, obj: Wire) -> bool:
        """Whether the object's access list lets the caller read it."""
        return self._acl_allows(obj)

    def can_read(self, obj: Wire) -> bool:
        """Whether the caller may read the object: ``allows`` and ``acl_allows``."""
        return self._acl_allows(obj) and self._allows(obj)

    def hidden_fields(self, obj: Wire) -> frozenset[str]:
        """Return the fields of this object that the caller may not see.

        ``unsent_fields`` are among them.
        """
        if not self._hides_by_object or self._table is None:
            return self._hidden
        hidden = protection.hidden_fields(self.principal, self._table, obj)
        return hidden | unsent_fields(self.class_name)

    def redact(self, obj: Wire, stored: Wire | None = None) -> Wire:
        """Return the object without hidden fields; ``obj`` isn't changed.

        ``stored`` is the object that decides which fields are hidden, if a trigger changed ``obj``.
        """
        hidden = self.hidden_fields(obj if stored is None else stored)
        if hidden.isdisjoint(obj):
            return obj
        return {name: value for name, value in obj.items() if name not in hidden}


def current_table(class_name: ClassName) -> ClassTable | None:
    """Return the class as it is in the database now, or None."""
    return registry.current(class_name)


def unsent_fields(class_name: ClassName) -> frozenset[str]:
    """Return the fields that sockets never send, not even to the master key.

    Searches show them to the user and to the master key, and triggers get them.
    """
    return _UNSENT_OF_USERS if class_name == USER else _NOTHING_HIDDEN


def bind(
    principal: Principal,
    class_name: ClassName,
    table: ClassTable | None,
    where: Query,
    watch: Collection[FieldPath] = (),
) -> Access:
    """Return what the caller may see of the objects that ``where`` matches.

    ``table`` is the class, as current as possible; None if it doesn't exist yet. ``watch`` are the
    fields whose changes the caller subscribes to.

    Raises ``OperationForbidden``, ``ObjectNotFound`` and ``InvalidSessionToken`` as a find does:
    the class's permissions, a protected field in ``where`` or ``watch``; ``InvalidQuery`` for what
    can only be found with the database; and what a trigger before a find raises.
    """
    check_matchable(where, table)
    if table is None:
        policy.check_missing_class(principal, class_name)
        return _bind_missing_class(principal, class_name)
    if class_name == SESSION and principal.user_id is None and not principal.is_master:
        raise InvalidSessionToken("Invalid session token")
    action = policy.read_action(class_name, where)
    protection.check_question(principal, table, where)
    _check_watch(principal, table, watch)
    return _bind_class(principal, table, action)


def check_matchable(where: Query, table: ClassTable | None, place: str = "where") -> None:
    """Raise ``InvalidQuery`` for a query that can't be matched with one object alone."""
    for node in walk(where):
        if isinstance(node, InQuery | Select | RelatedTo):
            raise InvalidQuery(
                f"{place}: a live query can't look into other objects ($inQuery, $notInQuery,"
                " $select, $dontSelect, $relatedTo)"
            )
    if table is not None:
        relations = fields_read(where) & table.relation_values.keys()
        if relations:
            raise InvalidQuery(f"{place}.{min(relations)}: a live query can't look into a relation")
    predicate(where)  # raises for a text search that only PostgreSQL can do


def _check_watch(principal: Principal, table: ClassTable, watch: Collection[FieldPath]) -> None:
    for path in watch:
        # That a field has changed reveals something about it.
        protection.check_question(principal, table, Exists((path[0],), True))


def _bind_class(principal: Principal, table: ClassTable, action: Action) -> Access:
    of_class, listed = policy.reading(principal, table, action)
    narrowed = triggers.narrowing(principal, table.class_name)
    try:
        check_matchable(narrowed, table, "before_find")
    except InvalidQuery:
        # Fail closed: the objects that the trigger would exclude aren't known here.
        raise OperationForbidden(
            f"Objects of {table.class_name} can't be watched: a trigger queries other objects."
        ) from None
    condition = all_of(of_class, narrowed)
    hidden = protection.hidden_fields(principal, table) | unsent_fields(table.class_name)
    by_object = protection.hides_by_object(principal, table)
    return Access(
        class_name=table.class_name,
        version=table.version,
        # Conditions name the user where it matters. A tree is no key (1 == True), its text is one.
        rights=(table.version, repr(condition), hidden, principal.acl_ids if by_object else None),
        acl_ids=None if isinstance(listed, Everything) else principal.acl_ids,
        condition=condition,
        principal=principal,
        _table=table,
        _allows=predicate(condition, class_name=table.class_name),
        _acl_allows=predicate(listed),
        _hidden=hidden,
        _hides_by_object=by_object,
    )


def _bind_missing_class(principal: Principal, class_name: ClassName) -> Access:
    return Access(
        class_name=class_name,
        version=0,
        rights=(0,),
        acl_ids=None if principal.is_master else principal.acl_ids,
        condition=Nothing(),
        principal=principal,
        _table=None,
        _allows=predicate(Nothing()),
        _acl_allows=predicate(Nothing()),
        _hidden=_NOTHING_HIDDEN,
        _hides_by_object=False,
    )
