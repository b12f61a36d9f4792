"""The event that a change of an object is for a subscription, and the fields that are sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from objects.core.names import FieldPath
from objects.core.query.paths import exact_value
from objects.core.values import equal

Op: TypeAlias = Literal["create", "update", "enter", "leave", "delete"]

ALWAYS_SENT: Final = frozenset({"className", "objectId", "createdAt", "updatedAt", "ACL"})


def outcome(
    before: bool | None,
    after: bool | None,
) -> Op | None:
    """Return the event for a subscription, or None.

    ``before`` and ``after`` say whether the subscription finds the object as it was and as it is;
    None stands for an object that isn't there.
    """
    if after:
        return "update" if before else ("create" if before is None else "enter")
    if before:
        return "delete" if after is None else "leave"
    return None


def touches(
    watch: Collection[FieldPath], before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """Whether one of the fields, each a path, differs between two images of an object."""
    return any(not equal(exact_value(before, path), exact_value(after, path)) for path in watch)


def fields_sent(names: Iterable[str]) -> frozenset[str]:
    """Return the fields that are sent for these ``keys``: some always are."""
    return ALWAYS_SENT.union(names)
