"""The object service: the only access to objects.

REST, batch, functions, LiveQuery, the admin and jobs call it and nothing below it, so each rule
holds for all of them. The order inside is fixed: maintenance mode, access (class-level permissions,
pointer permissions, protected fields, access lists), schema, and one transaction. Callers get plain
values and ``ServiceError``; they never see SQL and need no permission checks of their own.

``classes`` is the same for classes themselves: schemas, permissions, indexes, purge.
"""

from __future__ import annotations

from objects.service.conditional_writes import update_unchanged
from objects.service.pages import Page, find_page
from objects.service.reads import Found, aggregate, count, find, get
from objects.service.writes import Created, Updated, create, create_many, delete, update

__all__ = [
    "Created",
    "Found",
    "Page",
    "Updated",
    "aggregate",
    "count",
    "create",
    "create_many",
    "delete",
    "find",
    "find_page",
    "get",
    "update",
    "update_unchanged",
]
