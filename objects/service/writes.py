"""Writing objects: create, update, delete.

In maintenance mode all of them raise ``UnderMaintenance``, before anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from django.db import transaction

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from objects.access.policy import check_chosen_id
from objects.core.names import (
    ClassName,
    ObjectId,
    check_class_name,
    check_object_id,
    new_object_id,
)
from objects.core.update.operations import Write
from objects.core.update.parser import parse_write
from objects.database import maintenance
from objects.service import direct_writes, staged_writes
from objects.service.direct_writes import Created, NotTogether, Updated
from objects.service.stale_definitions import with_current_classes


@maintenance.reported_first
def create(
    principal: Principal,
    class_name: ClassName,
    body: Mapping[str, Json],
    *,
    object_id: str | None = None,
) -> Created:
    """Store a new object with the fields of ``body``; under ``object_id`` if a command chose one.

    New fields are added to the class, and for the master key (or where clients may) the class
    itself is made. Raises ``OperationForbidden``, ``IncorrectType``, ``ValidationFailed``,
    ``DuplicateValue``, what ``parse_write`` raises and what triggers refuse; nothing is stored
    then.
    """
    check_class_name(class_name)
    fields = dict(body)
    if _chooses_id(fields):
        check_chosen_id(principal, class_name)
        new_id = check_object_id(fields.pop("objectId"))
    else:
        new_id = new_object_id() if object_id is None else check_object_id(object_id)
    write = None
    if not staged_writes.concerns_saving(class_name):
        write = parse_write(
            fields, creating=True, class_name=class_name, sets_times=principal.is_maintenance
        )
    staged: staged_writes.Create | None = None

    def attempt() -> Created:
        nonlocal staged
        # Checked in each attempt: a class that has changed may have triggers now.
        if write is None or staged_writes.concerns_saving(class_name):
            if staged is None:
                chosen = "objectId" in body and "objectId" not in fields
                staged = staged_writes.Create(
                    principal, class_name, fields, new_id, id_is_chosen=chosen
                )
            return staged.attempt()
        return direct_writes.create(principal, class_name, write, new_id)

    return with_current_classes(attempt)


def _chooses_id(body: Mapping[str, Json]) -> bool:
    return service_settings.ALLOW_CUSTOM_OBJECT_ID and "objectId" in body


@maintenance.reported_first
def create_many(
    principal: Principal, class_name: ClassName, bodies: Sequence[Mapping[str, Json]]
) -> list[Created | ServiceError]:
    """Store new objects of one class independently, and return the outcome of each, in order.

    Objects that don't change the class are stored by one statement. The outcome is that of calling
    ``create`` for each in turn, except that objects stored together have the same timestamps.
    Inside a transaction an error is raised instead, since nothing can follow it there.
    """
    check_class_name(class_name)
    outcomes: list[Created | ServiceError] = []
    together: list[_Parsed] = []
    if (
        principal.is_maintenance
        or staged_writes.concerns_saving(class_name)
        or any(map(_chooses_id, bodies))
    ):
        return [_outcome(partial(create, principal, class_name, body)) for body in bodies]
    for body in bodies:
        try:
            write = parse_write(dict(body), creating=True, class_name=class_name)
        except ServiceError:
            outcomes += _create_together(principal, class_name, together)
            together = []
            outcomes.append(_outcome(partial(create, principal, class_name, body)))
        else:
            together.append((body, write))
    return outcomes + _create_together(principal, class_name, together)


_Parsed = tuple[Mapping[str, Json], Write]


def _outcome(action: Callable[[], Created]) -> Created | ServiceError:
    try:
        return action()
    except ServiceError as error:
        if transaction.get_connection().in_atomic_block:
            raise
        return error


def _create_together(
    principal: Principal, class_name: ClassName, together: list[_Parsed]
) -> list[Created | ServiceError]:
    def created() -> list[Created]:
        if staged_writes.concerns_saving(class_name):
            raise NotTogether
        writes = [write for _, write in together]
        return direct_writes.create_together(principal, class_name, writes)

    if len(together) > 1:
        with suppress(ServiceError, NotTogether), transaction.atomic():
            return [*with_current_classes(created)]
    return [_outcome(partial(create, principal, class_name, body)) for body, _ in together]


@maintenance.reported_first
def update(
    principal: Principal, class_name: ClassName, object_id: ObjectId, body: Mapping[str, Json]
) -> Updated:
    """Change the fields that ``body`` names and leave the others.

    Raises ``ObjectNotFound`` also when the caller may not write the object, and otherwise what
    ``create`` raises; nothing is changed then.
    """
    check_class_name(class_name)
    fields = dict(body)
    if fields.get("objectId") == object_id:
        # The SDKs for Android and Dart send it with each update.
        del fields["objectId"]
    write = None
    if not staged_writes.concerns_saving(class_name):
        write = parse_write(fields, creating=False, class_name=class_name)
    staged: staged_writes.Update | None = None

    def attempt() -> Updated:
        nonlocal staged
        if write is None or staged_writes.concerns_saving(class_name):
            if staged is None:
                staged = staged_writes.Update(principal, class_name, object_id, fields)
            return staged.attempt()
        return direct_writes.update(principal, class_name, object_id, write)

    return with_current_classes(attempt)


@maintenance.reported_first
def delete(principal: Principal, class_name: ClassName, object_id: ObjectId) -> None:
    """Remove an object. Raises ``ObjectNotFound`` also when the caller may not write it."""
    check_class_name(class_name)

    def attempt() -> None:
        if staged_writes.concerns_deleting(class_name):
            staged_writes.delete(principal, class_name, object_id)
        else:
            direct_writes.delete(principal, class_name, object_id)

    with_current_classes(attempt)
