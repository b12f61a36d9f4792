"""The constraint tree: what a ``where`` means, independent of how it is read.

A tree is made by ``parser.parse_where`` or by the policy, and is read by ``predicate`` (its
meaning), by ``objects.sql.compiler`` (SQL), and by ``fields_read``. Nodes are immutable. Every
value in them is canonical wire JSON, and every operand was checked when the node was made: readers
don't validate again. This module exports all node classes; each is defined with its operator in
``objects.core.query.operators``.

Two nodes are compared by Python's ``==`` only in tests: ``Equals(p, True) == Equals(p, 1)``, so
a tree must never be used as the key of a cache.

Terms used by the nodes, for an object and a path:

* *candidates*: the values at the path. The first step reads the object; a further step reads a
  key of an object, and goes through a list to each element that is an object. When a step is a
  number the descent is exact instead: an index of a list or a key of an object, nothing implicit.
* *elements*: the candidates, and the elements of those that are lists (one level).
* A Relation field reads as the list of pointers to its members, one without members as missing.
* ``createdAt`` and ``updatedAt`` read as Dates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from backend.kernel.json_types import Json
from objects.core.names import FieldName
from objects.core.query.geo_formulas import EARTH_RADIUS_KM, EARTH_RADIUS_MILES, Point
from objects.core.query.node import SCORE, OrderKey, Query, SubQuery, walk
from objects.core.query.operators.access_lists import OneOfIds, ReadableBy, WritableBy
from objects.core.query.operators.comparison import Compare, Comparison, Equals, Exists, NotEquals
from objects.core.query.operators.composition import (
    AllOf,
    AnyOf,
    Everything,
    NoneOf,
    Nothing,
    all_of,
)
from objects.core.query.operators.geo import (
    IntersectsPoint,
    Near,
    WithinBox,
    WithinPolygon,
    WithinSphere,
)
from objects.core.query.operators.membership import ContainedBy, ContainsAll, In, NotIn
from objects.core.query.operators.subqueries import InQuery, RelatedTo, Select
from objects.core.query.operators.text import ContainsAllRegex, Matches, Text
from objects.core.query.paths import Path, Steps

__all__ = [
    "EARTH_RADIUS_KM",
    "EARTH_RADIUS_MILES",
    "SCORE",
    "AllOf",
    "AnyOf",
    "Compare",
    "Comparison",
    "ContainedBy",
    "ContainsAll",
    "ContainsAllRegex",
    "Equals",
    "Everything",
    "Exists",
    "FindOptions",
    "In",
    "InQuery",
    "IntersectsPoint",
    "Matches",
    "Near",
    "NoneOf",
    "NotEquals",
    "NotIn",
    "Nothing",
    "OneOfIds",
    "OrderKey",
    "Path",
    "Point",
    "Query",
    "ReadableBy",
    "RelatedTo",
    "Select",
    "Steps",
    "SubQuery",
    "Text",
    "WithinBox",
    "WithinPolygon",
    "WithinSphere",
    "WritableBy",
    "all_of",
    "fields_read",
    "near_of",
    "order_fields",
    "text_of",
    "walk",
]


@dataclass(frozen=True, slots=True)
class FindOptions:
    """Which objects to find, and which of their fields to send.

    Built by ``options.parse_find_options``.

    ``keys`` None means all fields. ``include`` holds every prefix of the requested paths, so
    ``owner.company`` is there as ``("owner",)`` and ``("owner", "company")``.
    """

    where: Query
    limit: int
    skip: int = 0
    order: tuple[OrderKey, ...] = ()
    keys: frozenset[Path] | None = None
    exclude_keys: frozenset[Path] = frozenset()
    include: tuple[Path, ...] = ()
    include_all: bool = False
    count: bool = False
    redirect_key: FieldName | None = None
    explain: bool = False
    score: bool = False
    """Whether each object gets the rank of a text search as its ``score``."""
    raw_where: Json = field(default=None, compare=False, repr=False)
    """The client's own ``where``, as it was sent; for reporting it to triggers."""
    advice: Mapping[str, Json] = field(default_factory=dict, compare=False, repr=False)
    """Parameters without an effect here (``readPreference``, …), for reporting them too."""


def fields_read(query: Query) -> frozenset[FieldName | Literal["*"]]:
    """Return the names of the top-level fields on which a match depends.

    Sub-queries read fields of their own class: call this with their ``where`` too. A search
    without a path reads every String field, which ``"*"`` stands for.
    """
    return frozenset(name for node in walk(query) for name in node.fields())


def order_fields(order: tuple[OrderKey, ...]) -> frozenset[FieldName]:
    """Return the names of the top-level fields that sort keys read."""
    return frozenset(key.path[0] for key in order if not key.is_score)


def near_of(query: Query) -> Near | None:
    """Return the top-level Near part, which sorts the result."""
    parts = query.parts if isinstance(query, AllOf) else (query,)
    return next((part for part in parts if isinstance(part, Near)), None)


def text_of(query: Query) -> Text | None:
    """Return the top-level Text part, which gives ``$score``."""
    parts = query.parts if isinstance(query, AllOf) else (query,)
    return next((part for part in parts if isinstance(part, Text)), None)
