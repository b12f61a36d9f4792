"""The registry of all stages, its lookups, and the tables of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from objects.core.pipeline import accumulators
from objects.core.pipeline.expressions import Operator
from objects.core.pipeline.operators import registry as operators
from objects.core.pipeline.stage import Stage
from objects.core.pipeline.stages.groups import Group, SortByCount
from objects.core.pipeline.stages.joins import Lookup, Unwind
from objects.core.pipeline.stages.projections import AddFields, Project, Unset
from objects.core.pipeline.stages.selection import Count, Limit, Match, Sample, Skip, Sort

REGISTERED: Final[tuple[type[Stage], ...]] = (
    *(Match, Group, Project, AddFields, Unset),
    *(Sort, Limit, Skip, Count, Sample, SortByCount),
    *(Unwind, Lookup),
)
"""All stages, in the order of the documentation."""

STAGES: Final[Mapping[str, type[Stage]]] = {
    name: stage for stage in REGISTERED for name in stage.names
}
"""The stage of each name."""

NODES: Final[tuple[type[Stage], ...]] = tuple(
    dict.fromkeys(node for stage in REGISTERED for node in stage.nodes())
)
"""The classes of all nodes that parsing returns."""


_Documented: TypeAlias = type[Stage] | type[accumulators.Accumulation] | type[Operator]


def documentation() -> tuple[str, str, str]:
    """Return the tables of stages, accumulators and expressions in docs/aggregation.md."""
    return (
        _table("Stage", "Result", REGISTERED),
        _table("Accumulator", "Value", accumulators.REGISTERED),
        _table("Operator", "Value", operators.REGISTERED),
    )


def _table(first: str, second: str, rows: Iterable[_Documented]) -> str:
    lines = [f"| {' '.join(f'`{name}`' for name in row.names)} | {row.summary} |" for row in rows]
    return "\n".join([f"| {first} | {second} |", "|---|---|", *lines])
