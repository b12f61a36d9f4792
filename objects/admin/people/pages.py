"""Helpers of the pages of people and operations: reading objects, redirects and the audit log.

Staff see all objects, so they are read with the read-only master key; each page checks its
permission.
"""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme

from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import READ_ONLY_MASTER
from backend.logs.setup import get_logger
from objects import service
from objects.admin.browser.pagination import (
    NEWEST_FIRST,
    PageOfRows,
    Sorting,
    decode_edge,
    read_page,
)
from objects.core.names import OBJECT_ID, USER, ClassName, parse_object_id
from objects.core.query.tree import FindOptions, In, OrderKey, Query

ON_A_PAGE: Final = 50
LONGEST: Final = 256
"""Characters of what is looked for."""


def find(
    class_name: ClassName, where: Query, order: tuple[OrderKey, ...], limit: int
) -> list[Wire]:
    """Objects, as staff see them. Raises ``ServiceError``."""
    options = FindOptions(where=where, order=order, limit=limit)
    return service.find(READ_ONLY_MASTER, class_name, options).objects()


def get(class_name: ClassName, object_id: str) -> Wire:
    """One object, as staff see it. Raises ``ObjectNotFound``."""
    obj = service.get(READ_ONLY_MASTER, class_name, parse_object_id(object_id))
    return obj if isinstance(obj, dict) else obj.object()


def by_ids(class_name: ClassName, ids: list[str]) -> list[Wire]:
    """Return the objects with these ids, in this order, without deleted ones."""
    if not ids:
        return []
    rows = find(class_name, In((OBJECT_ID,), tuple(ids)), (), len(ids))
    objects = {str(obj["objectId"]): obj for obj in rows}
    return [objects[object_id] for object_id in ids if object_id in objects]


def asked_page(
    request: HttpRequest,
    class_name: ClassName,
    where: Query,
    sorting: Sorting = NEWEST_FIRST,
    size: int = ON_A_PAGE,
) -> PageOfRows:
    """The page that ``after`` or ``before`` of the address names. Raises ``ServiceError``."""
    after, before = (request.GET.get(name, "") for name in ("after", "before"))
    return read_page(
        lambda query, order, limit: find(class_name, query, order, limit),
        where,
        sorting,
        size,
        after=decode_edge(after) if after else None,
        before=decode_edge(before) if before else None,
    )


def names_of(ids: set[str]) -> dict[str, str]:
    """The names of users, by their ids."""
    users = by_ids(USER, sorted(ids))
    return {str(user["objectId"]): str(user.get("username", "")) for user in users}


def pointed_at(value: Json) -> str:
    """The id in a pointer, or nothing."""
    return str(value.get("objectId", "")) if isinstance(value, dict) else ""


def time_of(value: Json) -> str:
    """A time to read, of a text or a Date."""
    text = value.get("iso", "") if isinstance(value, dict) else value
    return str(text or "").replace("T", " ").removesuffix("Z")[:19]


def note(request: HttpRequest, action: str, **about: Json) -> None:
    """Log what a staff user has done."""
    log = get_logger("admin")
    log.info("staff write", staff=request.user.get_username(), action=action, **about)


def back(request: HttpRequest, otherwise: str) -> HttpResponseRedirect:
    """Redirect to the page that a form came from."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        target = otherwise
    return HttpResponseRedirect(target)
