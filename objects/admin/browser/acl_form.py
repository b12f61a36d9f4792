"""An object's access list as the rows of a form, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from backend.kernel.errors import InvalidACL
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.access.acl import parse_acl
from objects.core.names import ROLE_PREFIX, is_entity

_SPARE_ROWS: Final = 3
_MOST_ROWS: Final = 500
PUBLIC, ROLE, USER = "public", "role", "user"


@dataclass(frozen=True, slots=True)
class Row:
    """Who, and what they may do."""

    who: str = USER
    name: str = ""
    read: bool = False
    write: bool = False


@dataclass(frozen=True, slots=True)
class AclForm:
    """``is_open`` is an object without a list, which everybody may read and write."""

    is_open: bool
    rows: tuple[Row, ...]

    @property
    def all_rows(self) -> tuple[Row, ...]:
        """With spare ones to fill in."""
        return self.rows + (Row(),) * _SPARE_ROWS


def from_wire(acl: Json) -> AclForm:
    """The form of the list that an object has."""
    if not isinstance(acl, dict):
        return AclForm(True, ())
    rows = []
    for entity, entry in acl.items():
        granted = entry if isinstance(entry, dict) else {}
        who, name = USER, entity
        if entity == "*":
            who, name = PUBLIC, ""
        elif entity.startswith(ROLE_PREFIX):
            who, name = ROLE, entity.removeprefix(ROLE_PREFIX)
        rows.append(Row(who, name, bool(granted.get("read")), bool(granted.get("write"))))
    return AclForm(False, tuple(rows))


def from_post(form: Any) -> AclForm:
    """The form as it was filled in; rows without a name are dropped."""
    kinds, names = form.getlist("acl.who")[:_MOST_ROWS], form.getlist("acl.name")[:_MOST_ROWS]
    readers, writers = set(form.getlist("acl.read")), set(form.getlist("acl.write"))
    rows = []
    for index, (who, name) in enumerate(zip(kinds, names, strict=False)):
        read, write = str(index) in readers, str(index) in writers
        if name.strip() or (who == PUBLIC and (read or write)):
            rows.append(Row(who, name.strip(), read, write))
    return AclForm(form.get("acl.kind") == "open", tuple(rows))


def to_wire(form: AclForm) -> dict[str, Json] | None:
    """The list that the form means; None for none. Raises ``InvalidACL``."""
    if form.is_open:
        return None
    entries: dict[str, Json] = {}
    for row in form.rows:
        entity = {PUBLIC: "*", ROLE: f"{ROLE_PREFIX}{row.name}"}.get(row.who, row.name)
        if not is_entity(entity) or (row.who == USER and entity.startswith((ROLE_PREFIX, "*"))):
            raise InvalidACL(f"ACL: {shown(row.name)} can't be the name of a {row.who}")
        granted: dict[str, Json] = {}
        if row.read:
            granted["read"] = True
        if row.write:
            granted["write"] = True
        before = entries.get(entity)
        entries[entity] = {**before, **granted} if isinstance(before, dict) else granted
    return entries


def is_same(first: Json, second: Json) -> bool:
    """Whether two lists let the same people do the same."""
    return parse_acl(first) == parse_acl(second)
