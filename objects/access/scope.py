"""What the subqueries of a statement may reach."""

from __future__ import annotations

from backend.kernel.principal import Principal
from objects import triggers
from objects.access.policy import check_missing_class, readable
from objects.access.protection import check_question, redirect_target
from objects.core.names import ClassName, FieldName
from objects.core.query.tree import Exists, Query, all_of
from objects.definitions import registry
from objects.sql.tables import ClassTable


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
        target = class_name if source is None else redirect_target(source[0], key)
        if source is not None and target != class_name:
            check_question(self._principal, source[0], Exists((key,), True))
        return target

    def others(self, table: ClassTable) -> list[ClassTable]:
        """Return the classes that the statement depends on in addition to its own."""
        if not (self._checked or self._tables):
            return []
        tables = {other.class_id: other for other in self._checked}
        tables.update((other.class_id, other) for other, _ in self._tables.values())
        tables.pop(table.class_id, None)
        return [*tables.values()]
