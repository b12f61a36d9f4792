"""Which roles a user holds: those that name the user, and all that inherit to these.

A role in another's ``roles`` relation holds the other too, to any depth; circles end. One
recursive query answers that, and its answer is kept in memory under the version of the roles,
which every change of a role raises in its own transaction. So an answer is never older than the
request that uses it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from objects.core.names import ROLE
from objects.database.statements import fetch, fetch_rows, fetch_values
from objects.definitions import registry
from objects.sql.tables import ClassTable

_MOST_USERS = 10_000


class _HeldRole(NamedTuple):
    user_id: str
    name: str


class _Step(NamedTuple):
    """A role that a user holds, and the role through which; None: it names the user."""

    role_id: str
    through: str | None
    name: str | None


class _Member(NamedTuple):
    """A role in the ``roles`` of another one."""

    owner_id: str
    role_id: str
    name: str


_kept: dict[str, tuple[str, frozenset[str]]] = {}

_HELD = """
WITH RECURSIVE held (id) AS (
    SELECT m.owning_id FROM objects_relation m
    WHERE m.class_id = %(class_id)s AND m.key = 'users' AND m.related_id = %(user_id)s
    UNION
    SELECT m.owning_id FROM held h
    JOIN objects_relation m ON m.class_id = %(class_id)s AND m.key = 'roles' AND m.related_id = h.id
)
SELECT r.name FROM held h JOIN objects_role r ON r.object_id = h.id WHERE r.name IS NOT NULL
"""


def held_by(user_id: str, version: str) -> frozenset[str]:
    """The names of the roles that a user holds, as of this version of the roles or a later one."""
    cached = _kept.get(user_id)
    if cached is not None and cached[0] == version:
        return cached[1]
    table = _table()
    params = {"class_id": table.class_id, "user_id": user_id}
    names = frozenset(fetch_values(str, _HELD, params, prepare=True))
    if len(_kept) >= _MOST_USERS:
        _kept.clear()
    _kept[user_id] = (version, names)
    return names


_HELD_BY_MANY = """
WITH RECURSIVE held (user_id, id) AS (
    SELECT m.related_id, m.owning_id FROM objects_relation m
    WHERE m.class_id = %(class_id)s AND m.key = 'users'
    AND m.related_id = ANY (%(user_ids)s::text[])
    UNION
    SELECT h.user_id, m.owning_id FROM held h
    JOIN objects_relation m ON m.class_id = %(class_id)s AND m.key = 'roles' AND m.related_id = h.id
)
SELECT h.user_id, r.name FROM held h JOIN objects_role r ON r.object_id = h.id
WHERE r.name IS NOT NULL
"""


def held_by_many(user_ids: Collection[str]) -> dict[str, frozenset[str]]:
    """Return the names of the roles that each of these users holds now, from the database."""
    names: dict[str, set[str]] = {user_id: set() for user_id in user_ids}
    if names:
        table = _table()
        params = {"class_id": table.class_id, "user_ids": list(names)}
        for row in fetch_rows(_HeldRole, _HELD_BY_MANY, params, prepare=False):
            names[row.user_id].add(row.name)
    return {user_id: frozenset(held) for user_id, held in names.items()}


_STEPS = """
WITH RECURSIVE held (id, through) AS (
    SELECT m.owning_id, NULL::text COLLATE "C" FROM objects_relation m
    WHERE m.class_id = %(class_id)s AND m.key = 'users' AND m.related_id = %(user_id)s
    UNION
    SELECT m.owning_id, h.id FROM held h
    JOIN objects_relation m ON m.class_id = %(class_id)s AND m.key = 'roles' AND m.related_id = h.id
)
SELECT h.id, h.through, r.name FROM held h LEFT JOIN objects_role r ON r.object_id = h.id
"""


def paths(user_id: str) -> dict[str, tuple[str, ...]]:
    """The roles that a user holds now, each with the shortest way to it.

    The way begins with a role that names the user and ends with the role itself; each one on it
    is in the ``roles`` of the next. Reads the database.
    """
    table = _table()
    params = {"class_id": table.class_id, "user_id": user_id}
    steps = fetch_rows(_Step, _STEPS, params, prepare=False)
    names = {step.role_id: step.name for step in steps}
    next_ones: dict[str | None, list[str]] = {}
    for step in sorted(steps, key=lambda step: step.name or ""):
        next_ones.setdefault(step.through, []).append(step.role_id)
    ways: dict[str, tuple[str, ...]] = {role_id: (role_id,) for role_id in next_ones.get(None, ())}
    reached = list(ways)
    for role_id in reached:
        for further in next_ones.get(role_id, ()):
            if further not in ways:
                ways[further] = (*ways[role_id], further)
                reached.append(further)
    return {
        name: tuple(names[role] or role for role in way)
        for role_id, way in ways.items()
        if (name := names[role_id]) is not None
    }


_INSIDE = """
WITH RECURSIVE inside (owner, id) AS (
    SELECT m.owning_id, m.related_id FROM objects_relation m
    WHERE m.class_id = %(class_id)s AND m.key = 'roles' AND m.owning_id = %(role_id)s
    UNION
    SELECT m.owning_id, m.related_id FROM inside i
    JOIN objects_relation m
        ON m.class_id = %(class_id)s AND m.key = 'roles' AND m.owning_id = i.id
)
SELECT i.owner, i.id, COALESCE(r.name, i.id) FROM inside i
LEFT JOIN objects_role r ON r.object_id = i.id LIMIT %(limit)s
"""


@dataclass
class Branch:
    """A role, and those in its ``roles``. ``again``: its own are shown at another place."""

    role_id: str
    name: str
    inside: list[Branch] = field(default_factory=list)
    again: bool = False


def tree(role_id: str, name: str, limit: int = 1000) -> Branch:
    """The roles whose holders hold this one, as a tree of at most ``limit`` branches."""
    table = _table()
    params = {"class_id": table.class_id, "role_id": role_id, "limit": limit}
    rows = fetch_rows(_Member, _INSIDE, params, prepare=False)
    members: dict[str, list[_Member]] = {}
    for row in sorted(rows, key=lambda row: row.name):
        members.setdefault(row.owner_id, []).append(row)
    root = Branch(role_id, name)
    shown = {role_id}
    waiting = [root]
    for branch in waiting:
        for member in members.get(branch.role_id, ()):
            is_shown = member.role_id in shown
            branch.inside.append(Branch(member.role_id, member.name, again=is_shown))
            if not is_shown:
                shown.add(member.role_id)
                waiting.append(branch.inside[-1])
    return root


def _table() -> ClassTable:
    table = registry.find(ROLE)
    assert table is not None, "the class _Role is offered by this application"
    return table


def changed() -> None:
    """Make every process read roles again once this transaction is committed."""
    fetch(
        "INSERT INTO objects_role_version (id, version)"
        " VALUES (1, nextval('objects_role_version_number'))"
        " ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version",
        {},
        prepare=True,
    )


def forget_all() -> None:
    """Forget what is kept, as a test that rolls back has to."""
    _kept.clear()
