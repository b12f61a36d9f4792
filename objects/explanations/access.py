"""Explanations of access decisions about a class or an object.

Nothing is decided here. The decision functions (``objects.access.policy``) return their result and
their reasons, called in the same order as by the object service; the resulting condition is
evaluated against the object in Python, by the predicates that database queries are tested against.
The explanation is the result, with a sentence for each applied rule.

Triggers, validation and unique fields aren't evaluated: triggers may narrow reads and refuse
writes. The explanation only lists the triggers of the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from backend.kernel.errors import ObjectNotFound, ServiceError
from backend.kernel.json_types import Wire
from backend.kernel.principal import Principal
from backend.kernel.texts.shown import shown
from objects import triggers
from objects.access.policy import (
    check_class,
    check_missing_class,
    readable,
    refused_account,
    writable,
)
from objects.access.protection import always_hidden, hidden_fields, protection_groups
from objects.access.scope import Scope
from objects.core.access.class_permissions import READ_ACTIONS, Action
from objects.core.access.reasons import Reason
from objects.core.names import (
    USER,
    ObjectId,
    Subject,
    check_class_name,
    is_class_name,
    is_object_id,
)
from objects.core.query.predicate import matches
from objects.core.query.tree import Everything, Query, all_of
from objects.database import maintenance
from objects.definitions import registry
from objects.explanations.texts import Sentence, sentence_for
from objects.service.class_growth import check_may_create_class
from objects.service.stale_definitions import with_current_classes
from objects.sql.tables import ClassTable
from objects.storage import reads
from objects.triggers import Event
from objects.users import roles

Verdict: TypeAlias = Literal["yes", "no", "depends"]

_EVENTS: Mapping[str, tuple[Event, ...]] = {
    "read": ("before_find", "after_find"),
    "create": ("before_save",),
    "update": ("before_save",),
    "addField": ("before_save",),
    "delete": ("before_delete",),
}


@dataclass(frozen=True)
class Step:
    """An applied rule: ``verdict`` is its result, ``text`` a sentence about it.

    ``is_open``: the result is the same for every caller.
    """

    rule: str
    verdict: Verdict
    text: str
    details: tuple[str, ...] = ()
    is_open: bool = False


@dataclass(frozen=True)
class Hidden:
    """A field that the caller doesn't see, and the groups that hide it."""

    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """The outcome of an access decision with its reasons.

    ``verdict`` is ``depends`` if access is granted for some objects and no object was named.
    ``steps`` are in the order of evaluation, ``decided`` is the decisive step. ``error`` is the
    error that a refused caller receives, if any. ``hidden`` are fields of a read that
    isn't refused. ``triggers`` are those of the class that the action would run.
    """

    verdict: Verdict
    steps: tuple[Step, ...]
    decided: Step
    error: ServiceError | None = None
    hidden: tuple[Hidden, ...] = ()
    triggers: tuple[Event, ...] = ()


def explain(
    principal: Principal, class_name: str, action: Action, object_id: str | None = None
) -> Explanation:
    """Explain whether and why this caller may do the action. Names are unchecked input of staff.

    With an object's id: whether that object may be read, found, counted, changed, deleted, or
    changed so that its class gets a new field. Without: whether the class may be queried, or an
    object created (``addField``: created with a new field). ``create`` ignores the id.
    """
    return with_current_classes(
        lambda: _Inquiry(principal, class_name, action, object_id or None).explanation()
    )


@dataclass
class _Inquiry:
    """A question about access, and the steps evaluated so far."""

    principal: Principal
    class_name: str
    action: Action
    object_id: str | None
    steps: list[Step] = field(default_factory=list)

    def explanation(self) -> Explanation:
        try:
            verdict, hidden = self._answer()
        except ServiceError as refusal:
            # The step that refuses is always the last.
            return Explanation("no", tuple(self.steps), self.steps[-1], refusal)
        # A find that finds nothing is no error.
        is_refused = verdict == "no" and self.action not in ("find", "count")
        error = self._refusal() if is_refused else None
        events = _EVENTS["read" if self.action in READ_ACTIONS else self.action]
        return Explanation(
            verdict,
            tuple(self.steps),
            self._decided(verdict),
            error,
            hidden,
            tuple(event for event in events if triggers.has(Subject(self.class_name), event)),
        )

    def _answer(self) -> tuple[Verdict, tuple[Hidden, ...]]:
        if self.action not in READ_ACTIONS:
            self._check_maintenance()
        table = registry.find(self.class_name) if is_class_name(self.class_name) else None
        if table is None:
            self._without_class()
            return "yes", ()
        self._add("class", "yes", f"There is a class {self.class_name}.", is_open=True)
        obj = None
        if self.object_id is not None and not self._makes:
            obj = self._object(table)
        condition = self._conditions(table, obj)
        verdict = self._verdict(obj, condition)
        if self.action not in READ_ACTIONS or verdict == "no":
            return verdict, ()
        return verdict, _hidden(self.principal, table, obj)

    @property
    def _makes(self) -> bool:
        """Whether the question is about an object that isn't there yet."""
        return self.action == "create" or (self.action == "addField" and self.object_id is None)

    def _verdict(self, obj: Wire | None, condition: Query) -> Verdict:
        if self._makes:
            return "yes"
        if self.object_id is None:
            return "yes" if condition == Everything() else "depends"
        if obj is None:
            return "no"
        return "yes" if matches(condition, obj, class_name=self.class_name) else "no"

    def _refusal(self) -> ServiceError:
        if self.class_name == USER and self.action not in READ_ACTIONS:
            action: Action = "delete" if self.action == "delete" else "update"
            if not self.principal.is_master:
                return refused_account(self.principal, action, ObjectId(str(self.object_id)))
        return ObjectNotFound()

    def _decided(self, verdict: Verdict) -> Step:
        """The decisive step: the first that refuses or depends, else the last selective one.

        A selective step admits some callers only.
        """
        alike = [step for step in self.steps if step.verdict == verdict]
        if verdict != "yes":
            return alike[0]
        return next((step for step in reversed(alike) if not step.is_open), alike[-1])

    # -- The object service's checks, in their order ----------------------------------------------

    def _check_maintenance(self) -> None:
        try:
            maintenance.check()
        except ServiceError:
            self._add("maintenance", "no", "Maintenance mode is on: every write is refused.")
            raise
        self._add("maintenance", "yes", "Maintenance mode is off.", is_open=True)

    def _without_class(self) -> None:
        name = shown(self.class_name)
        try:
            class_name = check_class_name(self.class_name)
            if self._makes:
                check_may_create_class(self.principal, class_name)
                text = f"There is no class {name}; the caller may make it by saving an object."
            else:
                check_missing_class(self.principal, class_name)
                if self.action not in ("find", "count") or self.object_id is not None:
                    raise ObjectNotFound
                text = f"There is no class {name}; for this caller it reads as an empty one."
        except ServiceError:
            self._add("class", "no", f"There is no class {name}.")
            raise
        self._add("class", "yes", text)
        if self._makes:
            made = ClassTable(class_name, 0, 0, "", registry.new_class(class_name))
            self._conditions(made, None)

    def _object(self, table: ClassTable) -> Wire | None:
        object_id = str(self.object_id)
        record = None
        if is_object_id(object_id):
            record = reads.get(table, object_id, Everything(), Scope(self.principal))
        if record is None:
            self._add("object", "no", f"{self.class_name} has no object {shown(object_id)}.")
            if not is_object_id(object_id) and self.action not in READ_ACTIONS:
                raise ObjectNotFound
            return None
        self._add("object", "yes", f"{self.class_name} has this object.", is_open=True)
        return record.object()

    def _conditions(self, table: ClassTable, obj: Wire | None) -> Query:
        reasons: list[Reason] = []
        try:
            return self._class_condition(table, reasons)
        finally:
            held = roles.paths(self.principal.user_id) if self.principal.user_id else {}
            for reason in reasons:
                self._add_reason(table, reason, obj, held)

    def _class_condition(self, table: ClassTable, reasons: list[Reason]) -> Query:
        principal, action = self.principal, self.action
        if self._makes:
            check_class(principal, table, "create", reasons=reasons)
            if action == "addField":
                check_class(principal, table, "addField", creating=True, reasons=reasons)
            return Everything()
        if action in READ_ACTIONS:
            return readable(principal, table, action, reasons=reasons)
        object_id = ObjectId(self.object_id) if self.object_id is not None else None
        changes: Action = "update" if action == "addField" else action
        condition = writable(principal, table, changes, object_id, reasons=reasons)
        if action == "addField":
            condition = all_of(
                condition, check_class(principal, table, "addField", reasons=reasons)
            )
        return condition

    # -- Saying it --------------------------------------------------------------------------------

    def _add_reason(
        self,
        table: ClassTable,
        reason: Reason,
        obj: Wire | None,
        held: Mapping[str, tuple[str, ...]],
    ) -> None:
        verdict: Verdict = "depends"
        if reason.allows is not None:
            verdict = "yes" if reason.allows else "no"
        elif obj is not None and reason.condition is not None:
            met = matches(reason.condition, obj, class_name=self.class_name)
            verdict = "yes" if met else "no"
        sentence: Sentence = sentence_for(
            reason, self.principal, table.schema.permissions, table.class_name, obj
        )
        details = (
            *sentence.details,
            *(_way(name, held) for name in sentence.roles if name in held),
        )
        self._add(reason.rule, verdict, sentence.text, *details, is_open=sentence.is_open)

    def _add(
        self, rule: str, verdict: Verdict, text: str, *details: str, is_open: bool = False
    ) -> None:
        self.steps.append(Step(rule, verdict, text, details, is_open))


def _way(name: str, held: Mapping[str, tuple[str, ...]]) -> str:
    """Return how the user has a role."""
    way = held[name]
    if len(way) == 1:
        return f"role:{name} has the user among its users."
    return f"role:{name} is held through {' → '.join(way)}: {way[0]} has the user among its users."


def _hidden(principal: Principal, table: ClassTable, obj: Wire | None) -> tuple[Hidden, ...]:
    """Return the fields of the class, or of this object, that the caller doesn't see, and why."""
    protected = table.schema.permissions.protected_fields
    groups = sorted(protection_groups(principal, table, obj) & protected.keys())
    hidden = []
    for name in sorted(hidden_fields(principal, table, obj)):
        hiding = tuple(group for group in groups if name in protected[group])
        if name in always_hidden(table):
            by_class = "everybody" if name in table.hidden else "everybody but the owner"
            hiding = (*hiding, by_class)
        hidden.append(Hidden(name, hiding))
    return tuple(hidden)
