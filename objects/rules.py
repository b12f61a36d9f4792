"""The rules of single classes: what they require of their objects beyond schema and permissions.

The object service calls the steps of a class's rules around a write. Most classes have no rules.
``_User``, ``_Session``, ``_Role`` and ``_Installation`` have (``objects.users.rules``), and so have
the classes of ``chain`` and ``functions``. A step may raise a ``ServiceError``; those inside the
transaction undo all of the write then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Wire
from backend.kernel.principal import Principal
from objects.core.names import ClassName, ObjectId

AnyChange = TypeVar("AnyChange", bound="Change")


@dataclass
class Change:
    """One write to one object, as a class's rules see it.

    Rules that prove something in one step and use it in a later one (a hashed password, an identity
    at a provider) add typed fields in a subclass, their ``change_type``.
    """

    principal: Principal
    object_id: ObjectId
    fields: dict[str, Any]
    """The body, plain values and operators. Rules may change it before it is parsed."""
    before: Wire | None = None
    """The object as it was, locked; None for a new one."""
    creating: bool = False
    id_is_chosen: bool = False
    """Whether the caller has chosen the id of a new object."""
    instead: Wire | None = None
    """Another object of the class, if the rules choose one to be changed in place of this one."""
    shown: Wire = field(default_factory=dict)
    """Added to the response, even if the caller may not read the object."""
    server_changes: Wire = field(default_factory=dict)
    """What triggers have changed of ``fields``."""

    def for_attempt(self: AnyChange) -> AnyChange:
        """Return a copy to attempt the write with, since an attempt may have to be repeated."""
        return replace(self, fields=dict(self.fields), shown=dict(self.shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferredObject:
    """An object as another server had it, with its id and its times.

    ``acl`` and ``fields`` are in wire form, ``fields`` without relations.
    """

    object_id: str
    created_at: str
    updated_at: str
    acl: Wire | None
    fields: Wire
    password_hash: str | None = field(default=None, repr=False)
    """An account's password as bcrypt has hashed it."""
    session_token: str | None = field(default=None, repr=False)


class Rules(Generic[AnyChange]):
    """The rules of one class: a step for each moment of a write, in this order."""

    change_type: type[Any] = Change
    """The class of the changes that the steps take."""

    def check_request(self, change: AnyChange) -> None:
        """Before everything else, triggers included: ``fields`` is what the caller has sent."""

    def planned(self, change: AnyChange) -> Wire:
        """Return fields that the rules will store, for triggers before the save to see."""
        return {}

    def prepare(self, change: AnyChange) -> None:
        """Before the write's transaction, and once: what takes long, or calls others.

        The caller may do this to objects of the class; ``before`` is not known yet. If triggers may
        change the write, it is in the transaction, after them.
        """

    def begin(self, change: AnyChange) -> None:
        """First in the transaction of a create or an update, before any object is locked."""

    def before_create(self, change: AnyChange) -> None:
        """Before a new object is stored; the caller may create objects of the class."""

    def after_create(self, change: AnyChange) -> None:
        """After a new object was stored."""

    def before_update(self, change: AnyChange) -> None:
        """Before an object is changed; the caller may change it, and it is locked."""

    def after_update(self, change: AnyChange) -> None:
        """After an object was changed."""

    def before_delete(self, change: AnyChange) -> None:
        """Before an object is removed; the caller may remove it, and it is locked."""

    def after_delete(self, change: AnyChange) -> None:
        """After an object was removed."""

    def after_purge(self) -> None:
        """After all objects of the class were removed at once."""

    def before_transfer(self, obj: TransferredObject) -> TransferredObject:
        """Return a transferred object as it is to be stored, or raise why it can't be."""
        return obj

    def after_transfer(
        self, stored: Sequence[TransferredObject], skipped: Sequence[TransferredObject]
    ) -> None:
        """After objects were transferred, in the same transaction, as they came.

        ``skipped`` are those that are stored already, as new as they came or newer. Both are empty
        if only members of relations were added.
        """

    def add_internal_fields(self, objects: Sequence[Wire]) -> None:
        """Add what only the maintenance key sees to objects that it reads."""

    def error_for(self, constraint: str) -> ServiceError | None:
        """Return the error that a violated constraint of the class's table means, or None."""
        return None


class NoRules(Rules[Change]):
    """The rules of a class that has none."""


_rules: dict[str, Rules[Any]] = {}


def set_rules(class_name: ClassName, rules: Rules[Any]) -> None:
    """Give a class its rules. Call it in an app's wiring."""
    _rules[class_name] = rules


def rules_of(class_name: ClassName) -> Rules[Any] | None:
    """Return the rules of a class, or None if it has none."""
    return _rules.get(class_name)
