"""What the objects app plugs into Django, the HTTP edge and its own core, all of it in one list."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

from backend.http.ports import ports
from objects.access import default_protection
from objects.changes import capture
from objects.core.names import IDEMPOTENCY, PUSH_STATUS
from objects.core.values import set_file_address
from objects.database.orm import guard_connection
from objects.file_urls import address_in_value
from objects.idempotency import replays
from objects.products import offer_products
from objects.push.statuses import StatusRules
from objects.reencryption import encrypted_column
from objects.rules import set_rules
from objects.staff.models import StaffSecondFactor
from objects.users.accounts import second_factor
from objects.users.models import SecondFactor
from objects.users.rules.classes import offer_classes
from objects.users.sessions import tokens


def wire(config: AppConfig) -> None:
    """Connect everything. ``ObjectsConfig.ready`` calls it once."""
    # Tasks are sent by their names (``backend.tasks.registered``).
    for tasks in ("files", "learned", "push", "users.email"):
        import_module(f"objects.{tasks}.tasks")
    # Every connection to PostgreSQL refuses text that PostgreSQL would read differently.
    connection_created.connect(guard_connection)
    # The triggers that capture changes for live queries.
    post_migrate.connect(capture.install, sender=config)
    # ``_User``, ``_Session``, ``_Role`` and ``_Installation`` with their rules.
    offer_classes()
    # Purging ``_Idempotency`` forgets request ids.
    set_rules(IDEMPOTENCY, replays.IdempotencyRules())
    # Deleting an object of ``_PushStatus`` cancels the push.
    set_rules(PUSH_STATUS, StatusRules())
    # ``_Product``: what its objects need.
    offer_products()
    # The setting ``PROTECTED_FIELDS``.
    default_protection.install()
    # The address of a File in an object is the service's, not the client's.
    set_file_address(address_in_value)
    # What ``manage.py rotate_keys`` encrypts again.
    for model in (SecondFactor, StaffSecondFactor):
        encrypted_column(model, "secret", second_factor.PURPOSE)
    # The HTTP edge: session tokens, and requests that are sent again.
    ports.authenticate_session = tokens.authenticate
    ports.idempotency = replays
