"""Classes that grow by what is saved to them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from backend.kernel.errors import InvalidClassName, Timeout, TransactionConflict
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from objects.access.policy import missing_class
from objects.core.names import ClassName, FieldName, check_class_name
from objects.core.schema.definition import ClassSchema
from objects.core.schema.inference import check_client_fields
from objects.core.update.operations import Write, fit
from objects.database import maintenance
from objects.definitions import registry
from objects.sql.tables import ClassTable
from objects.storage import reads


def check_may_create_class(principal: Principal, class_name: ClassName) -> None:
    """Raise ``InvalidClassName``, or ``OperationForbidden`` if the caller can't make the class."""
    check_class_name(class_name)
    if not (principal.may_write_as_master or service_settings.ALLOW_CLIENT_CLASS_CREATION):
        raise missing_class(class_name)


def create_class(class_name: ClassName) -> None:
    """Make a class without fields. Raises ``UnderMaintenance`` and ``ServiceUnavailable``."""
    maintenance.check()
    try:
        registry.create(registry.new_class(class_name))
    except (InvalidClassName, Timeout, TransactionConflict):
        # Another transaction has created it in the meantime, or is about to.
        raise reads.StaleClass((class_name,)) from None


def owned_fields(
    principal: Principal, write: Write, trusted: frozenset[FieldName]
) -> frozenset[FieldName]:
    """Return the fields of a write that the service's owner sets.

    The owner writes with the master key or in code of the service (``trusted``).
    """
    names = write.field_names if principal.may_write_as_master else trusted & write.field_names
    return names - write.emptied


def add_fields(
    principal: Principal, class_name: ClassName, write: Write, trusted: frozenset[FieldName]
) -> tuple[ClassTable, Write, Set[FieldName]]:
    """Add the fields that a write needs to its class, under the class's lock.

    Return the class as it is now, the write fitted to it, and the added fields that aren't in
    ``trusted``. The class may have changed since the caller's permissions were checked: check
    them again, with the returned class.

    New fields count as the clients' unless the owner sets them (``owned_fields``); client-made
    fields that the owner sets become the owner's. Raises ``UnderMaintenance``, and
    ``ObjectTooLarge`` for more fields than clients may add (``CLIENT_FIELD_LIMIT``).
    """
    maintenance.check()
    table = registry.lock(class_name)
    if table is None:
        raise reads.StaleClass((class_name,))
    fitted, new_fields = fit(write, table.schema)
    owned = owned_fields(principal, write, trusted)
    schema = table.schema
    by_clients: frozenset[FieldName] = (
        frozenset() if principal.may_write_as_master else frozenset(new_fields.keys() - owned)
    )
    check_client_fields(schema, by_clients, service_settings.CLIENT_FIELD_LIMIT)
    adopted = schema.adopted_by(owned)
    if new_fields or adopted:
        client_fields = (schema.client_fields | by_clients) - adopted
        schema = replace(schema.with_fields(new_fields), client_fields=client_fields)
        table = registry.save(table, schema)
    return table, fitted, new_fields.keys() - trusted


def grow(class_name: ClassName, schema: ClassSchema, grown: ClassSchema) -> ClassTable:
    """Give a class that still has ``schema`` the fields of ``grown``, under the class's lock.

    Raises ``UnderMaintenance``, and ``StaleClass`` if the class has another schema by now.
    """
    maintenance.check()
    table = registry.lock(class_name)
    if table is None or table.schema != schema:
        raise reads.StaleClass((class_name,))
    return registry.save(table, grown)
