"""The registry of all query operators, and its lookups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from objects.core.query.node import Query
from objects.core.query.operators.access_lists import OneOfIds, ReadableBy, WritableBy
from objects.core.query.operators.comparison import Compare, Equals, Exists, NotEquals
from objects.core.query.operators.composition import AllOf, AnyOf, Everything, NoneOf, Nothing
from objects.core.query.operators.geo import IntersectsPoint, Near, Within
from objects.core.query.operators.membership import ContainedBy, ContainsAll, In, NotIn
from objects.core.query.operators.subqueries import InQuery, RelatedTo, Select
from objects.core.query.operators.text import Matches, Text

REGISTERED: Final[tuple[type[Query], ...]] = (
    *(Equals, NotEquals, In, NotIn, Compare),
    *(Exists, ContainsAll, ContainedBy),
    *(Matches, Text),
    *(Near, Within, IntersectsPoint),
    *(InQuery, Select),
    *(AllOf, AnyOf, NoneOf, RelatedTo),
    *(Everything, Nothing, OneOfIds, ReadableBy, WritableBy),
)
"""All operators in the order of the documentation, then the nodes that clients can't write."""

OPERATORS: Final[Mapping[str, type[Query]]] = {
    name: operator for operator in REGISTERED for name in operator.names
}
"""The operator of each name that stands after a field."""

CLAUSES: Final[Mapping[str, type[Query]]] = {
    name: operator for operator in REGISTERED for name in operator.clauses
}
"""The operator of each name that stands in place of a field's name."""

COMPANIONS: Final[Mapping[str, str]] = {
    name: operator.names[0] for operator in REGISTERED for name in operator.companions
}
"""The operator that each option stands beside."""

NODES: Final[tuple[type[Query], ...]] = tuple(
    node for operator in REGISTERED for node in operator.nodes()
)
"""The classes of all nodes that a tree can have."""


def documentation() -> str:
    """Return the table of operators in docs/rest.md."""
    rows = [f"| {each.usage} | {each.summary} |" for each in REGISTERED if each.usage]
    return "\n".join(["| Operator | Meaning |", "|---|---|", *rows])
