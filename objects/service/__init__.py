"""The door: everything that one can do to objects.

REST, batch, functions, LiveQuery, the admin and jobs come through here and nowhere else, so that
each rule holds for all of them. The order inside is fixed: maintenance mode, access (class-level
permissions, pointer permissions, protected fields, ACL), schema, store in one transaction. Callers
get plain values and ``ServiceError``; they never see SQL, and needn't think of permissions.

Classes themselves (schemas, purge) are in ``objects.service.classes``.
"""

from __future__ import annotations

from objects.service.conditional_writes import update_unchanged
from objects.service.reads import Found, aggregate, count, find, get
from objects.service.writes import Created, Updated, create, create_many, delete, update

__all__ = [
    "Created",
    "Found",
    "Updated",
    "aggregate",
    "count",
    "create",
    "create_many",
    "delete",
    "find",
    "get",
    "update",
    "update_unchanged",
]
