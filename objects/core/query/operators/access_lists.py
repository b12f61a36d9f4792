"""Constraints that policies add to a client's query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.kernel.json_types import Json
from objects.core.names import OBJECT_ID
from objects.core.query.node import Matching, Predicate, Query, Uses
from objects.core.query.paths import Object, Path


@dataclass(frozen=True, slots=True)
class OneOfIds(Query):
    """Objects with one of these ids."""

    ids: frozenset[str]

    def predicate(self, matching: Matching) -> Predicate:
        ids = self.ids
        return lambda obj: obj["objectId"] in ids

    def uses(self) -> Uses:
        return ((OBJECT_ID, "equality"),)

    def required_values(self) -> tuple[Path, Sequence[Json]] | None:
        return (OBJECT_ID,), sorted(self.ids)


@dataclass(frozen=True, slots=True)
class ReadableBy(Query):
    """Objects without an ACL, or whose ACL lets one of these ids (``*`` among them) read."""

    ids: frozenset[str]

    def predicate(self, matching: Matching) -> Predicate:
        return lambda obj: _is_listed(obj, self.ids, "read")


@dataclass(frozen=True, slots=True)
class WritableBy(Query):
    """Objects without an ACL, or whose ACL lets one of these ids (``*`` among them) write.

    With ``is_named``, objects without an ACL don't match.
    """

    ids: frozenset[str]
    is_named: bool = False

    def predicate(self, matching: Matching) -> Predicate:
        if self.is_named:
            return lambda obj: "ACL" in obj and _is_listed(obj, self.ids, "write")
        return lambda obj: _is_listed(obj, self.ids, "write")


def _is_listed(obj: Object, ids: frozenset[str], right: str) -> bool:
    acl = obj.get("ACL")
    if not isinstance(acl, dict):
        return True
    rights = (acl.get(entry) for entry in ids)
    return any(isinstance(granted, dict) and granted.get(right) is True for granted in rights)
