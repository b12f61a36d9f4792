"""Writes in stages: to classes that have rules or triggers.

Each is one transaction, with the object locked from its reading to its writing, so that what rules
and triggers are shown is what they change. The order is:

- maintenance mode, which refuses all of it;
- the caller's right to do this at all;
- the class's rules on the request (``check_request``, and ``prepare`` unless a ``before_save``
  trigger can change it);
- triggers before, which may change the write or refuse it;
- the class's rules on the result, which have the last word;
- the write itself, and the rules and triggers that belong to it;
- when all is committed, the triggers after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import transaction

from backend.kernel.errors import ObjectNotFound
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import MASTER, Principal
from backend.settings.conf import service_settings
from objects import triggers
from objects.access.policy import refused_account, writable
from objects.access.scope import Scope
from objects.access.write_visibility import Visibility
from objects.core.access.class_permissions import Action
from objects.core.names import (
    USER,
    ClassName,
    FieldName,
    ObjectId,
    WriteKey,
    check_object_id,
)
from objects.core.query.tree import Everything
from objects.core.update.operations import Write, apply, fit
from objects.core.update.operators import Operation
from objects.core.update.parser import parse_write
from objects.core.values import copied, equal
from objects.database import maintenance
from objects.definitions import registry
from objects.rules import Change, NoRules, Rules, rules_of
from objects.service import direct_writes
from objects.service.direct_writes import Created, Updated
from objects.sql.tables import ClassTable
from objects.storage import reads, updates, writes
from objects.storage.conflicts import refusals
from objects.triggers import Event, Occasion

_SAVING: tuple[Event, ...] = ("before_save", "saved", "after_save")
_DELETING: tuple[Event, ...] = ("before_delete", "deleted", "after_delete")
_PLAIN = NoRules()
# What the service alone sets; a trigger's changes of it mean nothing.
_ITS_OWN = frozenset({"objectId", "createdAt", "updatedAt", "__type", "className"})


def concerns_saving(class_name: ClassName) -> bool:
    """Return whether a create or update of objects of the class has stages."""
    return rules_of(class_name) is not None or triggers.has(class_name, *_SAVING)


def concerns_deleting(class_name: ClassName) -> bool:
    """Return whether a delete of objects of the class has stages."""
    return rules_of(class_name) is not None or triggers.has(class_name, *_DELETING)


class _StagedWrite:
    """A write in stages that may be attempted more than once.

    ``attempt`` is called again if a class has changed meanwhile (``stale_definitions``). What takes
    long or can be proven only once (hashing, providers) is done in the first attempt alone.
    """

    def __init__(self, principal: Principal, class_name: ClassName, change: Change) -> None:
        self.principal = principal
        self.class_name = class_name
        self.change = change
        self.rules = rules_of(class_name) or _PLAIN
        self._is_checked = False
        self._is_prepared = False

    def _prepare(self) -> None:
        """Do what comes before the transaction, once.

        ``prepare`` follows in the transaction if triggers may change what it is about.
        """
        if self._is_checked:
            return
        change = self.change.for_attempt()  # rules that raise may have changed it halfway
        self.rules.check_request(change)
        is_prepared = not triggers.has(self.class_name, "before_save")
        if is_prepared:
            self.rules.prepare(change)
        self.change, self._is_prepared, self._is_checked = change, is_prepared, True

    def _prepare_late(self, attempt: Change) -> None:
        if not self._is_prepared:
            self.rules.prepare(attempt)


class Create(_StagedWrite):
    """Store a new object; another one may be changed instead, if the rules choose one."""

    def __init__(
        self,
        principal: Principal,
        class_name: ClassName,
        fields: dict[str, Any],
        object_id: ObjectId,
        *,
        id_is_chosen: bool = False,
    ) -> None:
        rules = rules_of(class_name) or _PLAIN
        change = rules.change_type(
            principal, object_id, fields, creating=True, id_is_chosen=id_is_chosen
        )
        super().__init__(principal, class_name, change)

    def attempt(self) -> Created:
        """Carry the write out. Raises ``StaleClass`` if it has to be attempted again."""
        maintenance.check()
        direct_writes.check_may_create(self.principal, self.class_name)
        self._prepare()
        rules, class_name = self.rules, self.class_name
        attempt = self.change.for_attempt()
        is_outermost = not transaction.get_connection().in_atomic_block
        with transaction.atomic():
            changes = _before_save(attempt, class_name, rules)
            self._prepare_late(attempt)
            rules.begin(attempt)
            rules.before_create(attempt)
            if attempt.instead is not None:
                object_id = ObjectId(str(attempt.instead["objectId"]))
                created_at = str(attempt.instead["createdAt"])
                done = _carry_out(rules, attempt, class_name, object_id, changes)
                shown = {"updatedAt": done.updated_at, **done.fields}
                return Created(object_id, created_at, shown, is_new=False)
            write = _write(rules, attempt, class_name, changes, creating=True)
            is_last = is_outermost and rules is _PLAIN and not _has_saved(class_name)
            new = direct_writes.create(
                self.principal,
                class_name,
                write,
                attempt.object_id,
                changes.names,
                is_last=is_last,
            )
            with refusals(_table(class_name)):
                rules.after_create(attempt)
            _saved(attempt, class_name, new.object_id, None)
        return Created(new.object_id, new.created_at, {**new.fields, **attempt.shown})


class Update(_StagedWrite):
    """Change an object, or another one that the rules choose."""

    def __init__(
        self,
        principal: Principal,
        class_name: ClassName,
        object_id: ObjectId,
        fields: dict[str, Any],
    ) -> None:
        rules = rules_of(class_name) or _PLAIN
        super().__init__(principal, class_name, rules.change_type(principal, object_id, fields))

    def attempt(self) -> Updated:
        """Carry the write out. Raises ``StaleClass`` if it has to be attempted again."""
        maintenance.check()
        rules, class_name, object_id = self.rules, self.class_name, self.change.object_id
        table = direct_writes.table_for_writing(self.principal, class_name, object_id)
        writable(self.principal, table, "update", object_id)
        self._prepare()
        attempt = self.change.for_attempt()
        with transaction.atomic():
            rules.begin(attempt)
            attempt.before = _locked(self.principal, class_name, object_id, "update")
            changes = _before_save(attempt, class_name, rules)
            self._prepare_late(attempt)
            rules.before_update(attempt)
            changed = attempt.before if attempt.instead is None else attempt.instead
            changed_id = ObjectId(str(changed["objectId"]))
            return _carry_out(rules, attempt, class_name, changed_id, changes)


def _carry_out(
    rules: Rules[Any],
    attempt: Change,
    class_name: ClassName,
    object_id: ObjectId,
    changes: _Changes,
) -> Updated:
    """Change this object as the rules want it by now."""
    write = _write(rules, attempt, class_name, changes, creating=False)
    done = direct_writes.update(attempt.principal, class_name, object_id, write, changes.names)
    with refusals(_table(class_name)):
        rules.after_update(attempt)
    _saved(attempt, class_name, object_id, attempt.instead or attempt.before)
    return Updated(done.updated_at, {**done.fields, **attempt.shown})


def _write(
    rules: Rules[Any],
    attempt: Change,
    class_name: ClassName,
    changes: _Changes,
    *,
    creating: bool,
) -> Write:
    # Only without rules: they may change the value of a field after it was parsed.
    parsed = changes.parsed if rules is _PLAIN else None
    write = parse_write(
        attempt.fields,
        creating=creating,
        parsed=parsed,
        class_name=class_name,
        sets_times=attempt.principal.is_maintenance,
    )
    changes_shown = _shown_changes(attempt.server_changes)
    return Write(write.operations, write.acl, creating, changes_shown, write.times)


def _shown_changes(changes: Wire) -> Wire:
    """Return the changes that are values or deletions.

    The response shows what other operators of a trigger have made of a field, as for the client's.
    """
    return {
        name: value
        for name, value in changes.items()
        if not isinstance(value, dict) or value.get("__op", "Delete") == "Delete"
    }


def delete(principal: Principal, class_name: ClassName, object_id: ObjectId) -> None:
    """Remove an object. Raises ``StaleClass`` if it has to be attempted again."""
    maintenance.check()
    rules = rules_of(class_name) or _PLAIN
    change = rules.change_type(principal, object_id, {})
    with transaction.atomic():
        change.before = _locked(principal, class_name, object_id, "delete")
        if triggers.has(class_name, "before_delete"):
            triggers.run(_deletion("before_delete", change, class_name))
        rules.before_delete(change)
        if not writes.delete(_table(class_name), object_id, Everything(), Scope(principal)):
            # A trigger was faster.
            raise ObjectNotFound
        rules.after_delete(change)
        triggers.run(_deletion("deleted", change, class_name))
        triggers.run_after_commit(_deletion("after_delete", change, class_name))


def _deletion(event: Event, change: Change, class_name: ClassName) -> Occasion:
    return Occasion(event, class_name, change.principal, object=copied(change.before))


# -- Triggers around a save -----------------------------------------------------------------------


class _Changes(NamedTuple):
    """The changes to a write by triggers before a save."""

    names: frozenset[FieldName]
    """The fields that they changed."""
    parsed: Mapping[WriteKey, Operation]
    """The operations of fields that they left alone; empty if none were parsed for them."""


_NO_TRIGGERS = _Changes(frozenset(), {})


def _before_save(attempt: Change, class_name: ClassName, rules: Rules[Any]) -> _Changes:
    """Call triggers that see and may change the object before it is stored."""
    if not triggers.has(class_name, "before_save"):
        return _NO_TRIGGERS
    fields = attempt.fields
    table = registry.find(class_name)
    write = parse_write(fields, creating=attempt.creating, class_name=class_name)
    by_rules = rules.planned(attempt)
    planned = {**_outcome(table, write, attempt), **by_rules}
    if attempt.id_is_chosen:
        planned["objectId"] = attempt.object_id
    occasion = Occasion(
        "before_save",
        class_name,
        attempt.principal,
        object=copied(planned),
        original=copied(attempt.before),
    )
    returned = triggers.run(occasion).object or {}
    if attempt.creating and service_settings.ALLOW_CUSTOM_OBJECT_ID and returned.get("objectId"):
        attempt.object_id = check_object_id(returned["objectId"])
    changed: Wire = {
        name: value
        for name, value in returned.items()
        if name not in _ITS_OWN and not (name in planned and equal(planned[name], value))
    }
    removed = planned.keys() - returned.keys() - _ITS_OWN - by_rules.keys()
    touched = changed.keys() | removed
    untouched = {
        name: value for name, value in fields.items() if name.partition(".")[0] not in touched
    }
    deletions: Wire = {name: {"__op": "Delete"} for name in removed}
    attempt.fields = {**untouched, **changed, **deletions}
    attempt.server_changes = {**changed, **deletions}
    attempt.server_changes.pop("password", None)
    # A trigger's names are checked when its write is parsed.
    return _Changes(
        frozenset(map(FieldName, touched)),
        {key: operation for key, operation in write.operations.items() if key in untouched},
    )


def _outcome(table: ClassTable | None, write: Write, attempt: Change) -> Wire:
    """Return the object as this write would make it, without the class's default values.

    Defaults fill what is missing after the triggers.
    """
    if table is not None:
        write, _ = fit(write, table.schema)
        if attempt.before is not None:
            Visibility(attempt.principal, table).check_operators(write, attempt.before)
    return apply(write, attempt.before or {})


def _has_saved(class_name: ClassName) -> bool:
    return triggers.has(class_name, "saved", "after_save")


def _saved(
    attempt: Change, class_name: ClassName, object_id: ObjectId, original: Wire | None
) -> None:
    """Call triggers with the stored object."""
    if not _has_saved(class_name):
        return
    record = reads.get(_table(class_name), object_id, Everything(), Scope(MASTER))
    if record is None:
        return  # a trigger inside of this transaction has removed it

    def occasion(event: Event) -> Occasion:
        return Occasion(
            event,
            class_name,
            attempt.principal,
            object=record.object(),
            original=copied(original),
        )

    triggers.run(occasion("saved"))
    triggers.run_after_commit(occasion("after_save"))


# -- What rules stand on --------------------------------------------------------------------------


def _table(class_name: ClassName) -> ClassTable:
    table = registry.find(class_name)
    if table is None:
        raise reads.StaleClass((class_name,))
    return table


def _locked(
    principal: Principal, class_name: ClassName, object_id: ObjectId, action: Action
) -> dict[str, Json]:
    """Lock and return the object, or raise ``ObjectNotFound`` if the caller has no access."""
    table = direct_writes.table_for_writing(principal, class_name, object_id)
    condition = writable(principal, table, action, object_id)
    record = updates.lock(table, object_id, condition, Scope(principal))
    if record is None:
        if class_name == USER and not principal.is_master:
            raise refused_account(principal, action, object_id)
        raise ObjectNotFound
    return record.object()
