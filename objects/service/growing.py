"""Classes that grow by what is saved to them."""

from __future__ import annotations

from backend.conf import service_settings
from backend.errors import ServiceError
from backend.principal import Principal
from objects import maintenance, registry, store
from objects.core.names import check_class_name
from objects.core.operations import Write, fit
from objects.policy import missing_class
from objects.tables import ClassTable


def check_may_create_class(principal: Principal, class_name: str) -> None:
    """Raise ``InvalidClassName``, or ``OperationForbidden`` if the caller can't make the class."""
    check_class_name(class_name)
    if not (principal.may_write_as_master or service_settings.ALLOW_CLIENT_CLASS_CREATION):
        raise missing_class(class_name)


def create_class(class_name: str) -> None:
    """Make a class without fields. Raises ``UnderMaintenance``."""
    maintenance.check()
    try:
        registry.create(registry.new_class(class_name))
    except ServiceError:
        # Somebody else made it in the meantime.
        raise store.StaleClass((class_name,)) from None


def add_fields(class_name: str, write: Write) -> tuple[ClassTable, Write]:
    """Add the fields that a write needs to its class, under the class's lock.

    Raises ``UnderMaintenance``.
    """
    maintenance.check()
    table = registry.lock(class_name)
    if table is None:
        raise store.StaleClass((class_name,))
    fitted, new_fields = fit(write, table.schema)
    if new_fields:
        table = registry.save(table, table.schema.with_fields(new_fields))
    return table, fitted
