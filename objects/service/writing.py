"""Writing objects: create, update, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import transaction
from psycopg.errors import IntegrityError

from backend.conf import service_settings
from backend.errors import ObjectNotFound, ServiceError
from backend.principal import Principal
from objects import registry, writes
from objects.constraints import refusal
from objects.core.access import Acl, default_acl
from objects.core.class_permissions import Action
from objects.core.names import check_object_id, is_object_id, new_object_id
from objects.core.operations import Write, apply, echo, fit
from objects.core.query import Everything, Query, all_of
from objects.core.schema import (
    check_not_emptied,
    check_required,
    with_defaults,
)
from objects.core.values import Json
from objects.core.write_parsing import parse_write
from objects.policy import (
    Scope,
    check_chosen_id,
    check_class,
    check_missing_class,
    fields_hidden_somewhere,
    missing_class,
    writable,
)
from objects.rules import Change, Rules, rules_of
from objects.service.current import with_current_classes
from objects.service.growing import add_fields, check_may_create_class, create_class
from objects.tables import ClassTable
from objects.writes import Written


@dataclass(frozen=True, slots=True)
class Created:
    """A new object: its id, its time, and the fields that the service has computed for it."""

    object_id: str
    created_at: str
    fields: dict[str, Json] = field(default_factory=dict)
    is_new: bool = True
    """Not so if the rules of the class chose to change an object that was there."""


@dataclass(frozen=True, slots=True)
class Updated:
    """A changed object: the time of the change, and the results of update operators."""

    updated_at: str
    fields: dict[str, Json] = field(default_factory=dict)


def create(
    principal: Principal,
    class_name: str,
    body: Mapping[str, Json],
    *,
    object_id: str | None = None,
) -> Created:
    """Store a new object with the fields of ``body``; under ``object_id`` if a command chose one.

    New fields are added to the class, and for the master key (or where clients may) the class
    itself is made. Raises ``OperationForbidden``, ``IncorrectType``, ``ValidationFailed``,
    ``DuplicateValue`` and what ``parse_write`` raises; nothing is stored then.
    """
    fields = dict(body)
    if _chooses_id(fields):
        check_chosen_id(principal, class_name)
        object_id = check_object_id(fields.pop("objectId"))
    elif object_id is not None:
        check_object_id(object_id)
    object_id = object_id or new_object_id()
    rules = rules_of(class_name)
    if rules is not None:
        return _create_by_rules(rules, principal, class_name, fields, object_id)
    return _create_one(principal, class_name, parse_write(fields, creating=True), object_id)


def _chooses_id(body: Mapping[str, Json]) -> bool:
    return service_settings.ALLOW_CUSTOM_OBJECT_ID and "objectId" in body


def _create_one(principal: Principal, class_name: str, write: Write, object_id: str) -> Created:
    return with_current_classes(lambda: _create(principal, class_name, write, object_id))


def _create(principal: Principal, class_name: str, write: Write, object_id: str) -> Created:
    table = registry.find(class_name)
    if table is None:
        check_may_create_class(principal, class_name)
        with transaction.atomic():
            create_class(class_name)
            return _create(principal, class_name, write, object_id)
    check_class(principal, table, "create")
    fitted, new_fields = fit(write, table.schema)
    if new_fields:
        check_class(principal, table, "addField", creating=True)
        with transaction.atomic():
            table, fitted = add_fields(class_name, write)
            return _insert(principal, table, fitted, object_id)
    return _insert(principal, table, fitted, object_id)


@dataclass(frozen=True, slots=True)
class _New:
    """An object that is ready to be stored, and what the answer will show of it."""

    object_id: str
    fields: dict[str, Json]
    acl: Acl
    shown: dict[str, Json]


def _new_object(principal: Principal, table: ClassTable, write: Write, object_id: str) -> _New:
    given = apply(write, {})
    given.pop("ACL", None)
    fields = with_defaults(table.schema, given)
    check_required(table.schema, fields)
    acl = write.acl
    if acl is None:
        acl = default_acl(table.schema.permissions, principal.user_id)
    defaults = {name: value for name, value in fields.items() if given.get(name) is not value}
    shown = _shown(principal, table, {**echo(write, fields), **defaults})
    return _New(object_id, fields, acl, shown)


def _insert(principal: Principal, table: ClassTable, write: Write, object_id: str) -> Created:
    new = _new_object(principal, table, write, object_id)
    created_at = writes.create(table, object_id, new.fields, new.acl, write.relations)
    return Created(object_id, created_at, new.shown)


def create_many(
    principal: Principal, class_name: str, bodies: Sequence[Mapping[str, Json]]
) -> list[Created | ServiceError]:
    """Store new objects of one class, each by itself; what became of each, in order.

    Objects that ask nothing new of the class are stored by one statement. The outcome is that of
    ``create`` for one after the other, but for the time: objects stored together have the same.
    Inside a transaction an error is raised instead, since nothing can follow it there.
    """
    outcomes: list[Created | ServiceError] = []
    together: list[Write] = []
    if rules_of(class_name) is not None or any(map(_chooses_id, bodies)):
        return [_outcome(partial(create, principal, class_name, body)) for body in bodies]
    for body in bodies:
        try:
            write = parse_write(dict(body), creating=True)
        except ServiceError as error:
            outcomes += _create_together(principal, class_name, together)
            together = []
            _raise_in_transaction(error)
            outcomes.append(error)
        else:
            together.append(write)
    return outcomes + _create_together(principal, class_name, together)


def _outcome(action: Callable[[], Created]) -> Created | ServiceError:
    try:
        return action()
    except ServiceError as error:
        _raise_in_transaction(error)
        return error


def _raise_in_transaction(error: ServiceError) -> None:
    if transaction.get_connection().in_atomic_block:
        raise error


def _create_together(
    principal: Principal, class_name: str, together: list[Write]
) -> list[Created | ServiceError]:
    if len(together) > 1:
        with suppress(ServiceError, _NotTogether), transaction.atomic():
            return [*with_current_classes(lambda: _insert_many(principal, class_name, together))]
    return [
        _outcome(partial(_create_one, principal, class_name, write, new_object_id()))
        for write in together
    ]


class _NotTogether(Exception):
    """Objects that one statement can't store."""


def _insert_many(principal: Principal, class_name: str, together: Sequence[Write]) -> list[Created]:
    table = registry.find(class_name)
    if table is None:
        raise _NotTogether
    check_class(principal, table, "create")
    new = []
    for write in together:
        fitted, new_fields = fit(write, table.schema)
        if new_fields or fitted.relations:
            raise _NotTogether
        new.append(_new_object(principal, table, fitted, new_object_id()))
    created_at = writes.create_many(table, [(one.object_id, one.fields, one.acl) for one in new])
    return [Created(one.object_id, created_at, one.shown) for one in new]


def update(
    principal: Principal, class_name: str, object_id: str, body: Mapping[str, Json]
) -> Updated:
    """Change the fields that ``body`` names and leave the others.

    Raises ``ObjectNotFound`` also when the caller may not write the object, and otherwise what
    ``create`` raises; nothing is changed then.
    """
    rules = rules_of(class_name)
    if rules is not None:
        return _update_by_rules(rules, principal, class_name, object_id, dict(body))
    write = parse_write(dict(body), creating=False)
    return with_current_classes(lambda: _update(principal, class_name, object_id, write))


def _update(principal: Principal, class_name: str, object_id: str, write: Write) -> Updated:
    table = _table_for_writing(principal, class_name, object_id)
    condition = writable(principal, table, "update", object_id)
    fitted, new_fields = fit(write, table.schema)
    if new_fields:
        condition = all_of(condition, check_class(principal, table, "addField"))
        with transaction.atomic():
            table, fitted = add_fields(class_name, write)
            return _change(principal, table, object_id, fitted, condition)
    return _change(principal, table, object_id, fitted, condition)


def _change(
    principal: Principal, table: ClassTable, object_id: str, write: Write, condition: Query
) -> Updated:
    check_not_emptied(table.schema, write.emptied)
    written: Written | None = writes.update(table, object_id, write, condition, Scope(principal))
    if written is None:
        raise ObjectNotFound
    return Updated(written.timestamp, _shown(principal, table, written.echo))


def delete(principal: Principal, class_name: str, object_id: str) -> None:
    """Remove an object. Raises ``ObjectNotFound`` also when the caller may not write it."""

    rules = rules_of(class_name)
    if rules is not None:
        _delete_by_rules(rules, principal, class_name, object_id)
        return

    def deleted() -> None:
        table = _table_for_writing(principal, class_name, object_id)
        condition = writable(principal, table, "delete", object_id)
        if not writes.delete(table, object_id, condition, Scope(principal)):
            raise ObjectNotFound

    with_current_classes(deleted)


def _table_for_writing(principal: Principal, class_name: str, object_id: str) -> ClassTable:
    table = registry.find(class_name)
    if table is None:
        check_missing_class(principal, class_name)
        raise ObjectNotFound
    if not is_object_id(object_id):
        raise ObjectNotFound
    return table


def _shown(principal: Principal, table: ClassTable, fields: dict[str, Json]) -> dict[str, Json]:
    """The answer to a write, without what the caller may not see."""
    hidden = fields_hidden_somewhere(principal, table) if fields else frozenset()
    return {name: value for name, value in fields.items() if name not in hidden}


# -- Classes with rules of their own ---------------------------------------------------------------


def _create_by_rules(
    rules: Rules, principal: Principal, class_name: str, fields: dict[str, Any], object_id: str
) -> Created:
    change = Change(principal, object_id, fields, creating=True)
    with_current_classes(lambda: check_class(principal, _table(class_name), "create"))
    rules.preparing(change)

    def created() -> Created:
        attempt = change.anew()
        with transaction.atomic():
            rules.beginning(attempt)
            rules.creating(attempt)
            if attempt.instead is not None:
                return _change_instead(rules, attempt, class_name)
            write = parse_write(attempt.fields, creating=True)
            done = _create(principal, class_name, write, object_id)
            with _refusals(class_name):
                rules.created(attempt)
        return Created(object_id, done.created_at, {**done.fields, **attempt.shown})

    return with_current_classes(created)


def _change_instead(rules: Rules, attempt: Change, class_name: str) -> Created:
    assert attempt.instead is not None
    object_id, created_at = (str(attempt.instead[name]) for name in ("objectId", "createdAt"))
    done = _carry_out(rules, attempt, class_name, object_id)
    shown = {"updatedAt": done.updated_at, **done.fields}
    return Created(object_id, created_at, shown, is_new=False)


def _carry_out(rules: Rules, attempt: Change, class_name: str, object_id: str) -> Updated:
    """Change this object as the rules want it by now."""
    write = parse_write(attempt.fields, creating=False)
    done = _update(attempt.principal, class_name, object_id, write)
    with _refusals(class_name):
        rules.updated(attempt)
    return Updated(done.updated_at, {**done.fields, **attempt.shown})


def _update_by_rules(
    rules: Rules, principal: Principal, class_name: str, object_id: str, fields: dict[str, Any]
) -> Updated:
    change = Change(principal, object_id, fields)
    with_current_classes(lambda: writable(principal, _table(class_name), "update", object_id))
    rules.preparing(change)

    def updated() -> Updated:
        attempt = change.anew()
        with transaction.atomic():
            rules.beginning(attempt)
            attempt.before = _locked(principal, class_name, object_id, "update")
            rules.updating(attempt)
            changed = attempt.before if attempt.instead is None else attempt.instead
            return _carry_out(rules, attempt, class_name, str(changed["objectId"]))

    return with_current_classes(updated)


def _delete_by_rules(rules: Rules, principal: Principal, class_name: str, object_id: str) -> None:
    def deleted() -> None:
        change = Change(principal, object_id, {})
        with transaction.atomic():
            change.before = _locked(principal, class_name, object_id, "delete")
            rules.deleting(change)
            table = _table(class_name)
            writes.delete(table, object_id, Everything(), Scope(principal))
            rules.deleted(change)

    with_current_classes(deleted)


def _table(class_name: str) -> ClassTable:
    table = registry.find(class_name)
    if table is None:
        raise missing_class(class_name)
    return table


def _locked(
    principal: Principal, class_name: str, object_id: str, action: Action
) -> dict[str, Json]:
    """The object, locked for the transaction; ``ObjectNotFound`` if the caller can't do this."""
    table = _table_for_writing(principal, class_name, object_id)
    condition = writable(principal, table, action, object_id)
    record = writes.lock(table, object_id, condition, Scope(principal))
    if record is None:
        raise ObjectNotFound
    return record.object()


@contextmanager
def _refusals(class_name: str) -> Iterator[None]:
    """Tell a client what it means when a statement of the rules violates a constraint."""
    try:
        yield
    except IntegrityError as error:
        refused = refusal(_table(class_name), error)
        if refused is None:
            raise
        raise refused from None
