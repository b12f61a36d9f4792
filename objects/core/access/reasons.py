"""The reasons of access decisions, recorded by the functions that decide.

``policy`` appends a reason for each applied rule to a list that its caller passes. No decision
depends on the reasons. ``objects.explanations.access`` turns them into sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from objects.core.access.class_permissions import Action
from objects.core.query.tree import Query

Rule: TypeAlias = Literal[
    "master key",
    "read-only master key",
    "class of the service",
    "sessions",
    "installations",
    "class permissions",
    "pointer permissions",
    "access list",
    "own account",
]


@dataclass(frozen=True, slots=True)
class Reason:
    """The result of one rule for an action.

    ``allows``: True or False, or None if it depends on the object.

    Then ``condition`` is what the object has to meet. ``because`` is the entry that matched, if
    one did: an id of the caller, ``requiresAuthentication``, fields that name users.
    """

    rule: Rule
    action: Action
    allows: bool | None
    because: tuple[str, ...] = ()
    condition: Query | None = None
