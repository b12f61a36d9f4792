"""Updates that apply only if the object hasn't changed since it was read."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from backend.kernel.errors import ObjectNotFound
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from objects.access.policy import writable
from objects.access.scope import Scope
from objects.core.names import ClassName, ObjectId
from objects.service import direct_writes
from objects.service.direct_writes import Updated
from objects.service.stale_definitions import with_current_classes
from objects.service.writes import update
from objects.storage import updates


def update_unchanged(
    principal: Principal,
    class_name: ClassName,
    object_id: ObjectId,
    body: Mapping[str, Json],
    updated_at: str,
) -> Updated | None:
    """Update an object if its ``updatedAt`` is still this one; otherwise return None.

    The object is locked during the comparison, so only one of two concurrent updates of the same
    state succeeds. Raises what ``update`` raises.
    """

    def is_unchanged() -> bool:
        table = direct_writes.table_for_writing(principal, class_name, object_id)
        condition = writable(principal, table, "update", object_id)
        record = updates.lock(table, object_id, condition, Scope(principal))
        if record is None:
            raise ObjectNotFound
        return record.updated_at == updated_at

    with transaction.atomic():
        if not with_current_classes(is_unchanged):
            return None
        return update(principal, class_name, object_id, body)
