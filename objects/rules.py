"""What single classes ask of their objects beyond schema and permissions.

The door calls these around a write, inside of the write's transaction: whatever raises undoes all
of it. Most classes have no rules; ``_User``, ``_Session``, ``_Role`` and ``_Installation`` have
(``objects.users``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Wire
from backend.kernel.principal import Principal
from objects.core.names import ClassName, ObjectId


@dataclass
class Change:
    """One write to one object, as a class's rules see it.

    ``fields`` is the body, plain values and operators; rules may change it before it is carried
    out. ``shown`` is added to the answer, even if the caller may not read the object;
    ``server_changes`` are what triggers have changed of ``fields``. ``kept`` is the rules' own,
    from before to after.
    """

    principal: Principal
    object_id: ObjectId
    fields: dict[str, Any]
    before: Wire | None = None
    """The object as it was, locked; None for a new one."""
    creating: bool = False
    instead: Wire | None = None
    """Another object of the class, if the rules choose one to be changed in place of this one."""
    shown: Wire = field(default_factory=dict)
    server_changes: Wire = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)

    def anew(self) -> Change:
        """A copy to attempt the write with: an attempt may have to be repeated."""
        return replace(self, fields=dict(self.fields), shown=dict(self.shown), kept=dict(self.kept))


class Rules:
    """The rules of one class. Each method may raise a ``ServiceError``."""

    def checking(self, change: Change) -> None:
        """Before everything else, triggers included: ``fields`` is what the caller has sent."""

    def preparing(self, change: Change) -> None:
        """Before the write's transaction: what takes long, or waits for others.

        The caller may do this to objects of the class; ``before`` is not known yet.
        """

    def beginning(self, change: Change) -> None:
        """First in the transaction of a create or an update, before any object is locked."""

    def creating(self, change: Change) -> None:
        """Before a new object is stored; the caller may create objects of the class."""

    def created(self, change: Change) -> None:
        """After it."""

    def updating(self, change: Change) -> None:
        """Before an object is changed; the caller may change it, and it is locked."""

    def updated(self, change: Change) -> None:
        """After it."""

    def deleting(self, change: Change) -> None:
        """Before an object is removed; the caller may remove it, and it is locked."""

    def deleted(self, change: Change) -> None:
        """After it."""

    def purged(self) -> None:
        """After all objects of the class were removed at once."""

    def refusal(self, constraint: str) -> ServiceError | None:
        """The error that a violated constraint of the class's table means, if it has one."""
        return None


_rules: dict[str, Rules] = {}


def set_rules(class_name: ClassName, rules: Rules) -> None:
    """Give a class its rules. Call it in ``AppConfig.ready``."""
    _rules[class_name] = rules


def rules_of(class_name: ClassName) -> Rules | None:
    """The rules of a class, or None if it has none."""
    return _rules.get(class_name)
