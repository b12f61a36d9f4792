"""What a write reveals to its caller about the object that it changes.

The right to change an object doesn't include the right to read it, so no write may serve as a read:

- The response contains computed values (results of operators, default values, changes by triggers)
  only if the caller may read the object as the write leaves it, and never fields that are protected
  from the caller in some object of the class.
- Whether the write succeeds doesn't depend on values that the caller may not read.

Fields with unique values, constraints of models' columns and the size of an object are the
exceptions: their errors depend on stored values for every caller (``docs/threat-model.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from backend.kernel.errors import OperationForbidden, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from objects.access.policy import readable
from objects.access.protection import fields_hidden_somewhere, hidden_fields
from objects.core.access.class_permissions import Action
from objects.core.names import ObjectId
from objects.core.query.predicate import matches
from objects.core.query.tree import AnyOf, Everything, Nothing, Query, ReadableBy
from objects.core.update.operations import Write, depends_on_stored
from objects.core.update.operators import Increment
from objects.sql.tables import ClassTable

_READING: tuple[Action, ...] = ("get", "find")


@dataclass(frozen=True)
class Visibility:
    """The part of a class's objects that one caller may see in the responses to its writes."""

    principal: Principal
    table: ClassTable
    new_id: ObjectId | None = None
    """The id of the object if the write creates it."""

    @cached_property
    def condition(self) -> Query:
        """The condition under which the caller may read an object, by a get or by a find."""
        principal = self.principal
        if principal.is_master:
            return Everything()
        if self.new_id is not None and self.table.class_name == "_User":
            # The response to a sign-up shows the new user, who has no session yet.
            principal = replace(principal, user_id=self.new_id)
        parts: list[Query] = []
        for action in _READING:
            with suppress(ServiceError):
                part = readable(principal, self.table, action)
                if isinstance(part, ReadableBy):
                    # The class demands nothing else, and each action demands the access list.
                    return part
                if part not in parts:
                    parts.append(part)
        if not parts:
            return Nothing()
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def is_readable(self, obj: Mapping[str, Json]) -> bool:
        """Return whether the caller may read this object, which is in its wire form."""
        return self.principal.is_master or matches(self.condition, obj)

    def without_protected(self, fields: dict[str, Json]) -> dict[str, Json]:
        """Return the fields without those that the caller may not see of some object."""
        if not fields:
            return fields
        hidden = fields_hidden_somewhere(self.principal, self.table)
        return {name: value for name, value in fields.items() if name not in hidden}

    def check_operators(self, write: Write, obj: Mapping[str, Json]) -> None:
        """Refuse operators whose success depends on values that the caller may not read.

        ``obj`` is the object before the write, locked. The refusal doesn't depend on the values
        themselves. Raises ``OperationForbidden``.
        """
        if self.principal.is_master:
            return
        paths = [
            path
            for path, operation in write.operations.items()
            if depends_on_stored(path, operation, self.table.schema)
            # A column has a range, and may have constraints.
            or (isinstance(operation, Increment) and path in self.table.columns)
        ]
        if not paths:
            return
        may_read = self.is_readable(obj)
        hidden = hidden_fields(self.principal, self.table, dict(obj)) if may_read else ()
        for path in paths:
            if not may_read or path.partition(".")[0] in hidden:
                raise OperationForbidden(
                    f"{path}: the result depends on a stored value that this user is not allowed"
                    " to read. Set the whole field instead."
                )
