"""PostgreSQL's plan of a query in words and as a table: what it reads, by which index, at what
cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_DEEPEST: Final = 50
_MOST: Final = 200  # steps


@dataclass(frozen=True, slots=True)
class Step:
    """One node of a plan. ``depth`` counts the steps around it."""

    depth: int
    kind: str
    index: str
    cost: float
    rows: int

    @property
    def padding(self) -> float:
        """The space before its name, in units of the font's size."""
        return 0.75 + 1.25 * self.depth


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, from the outside in."""

    steps: tuple[Step, ...]

    @property
    def cost(self) -> float:
        return self.steps[0].cost

    @property
    def rows(self) -> int:
        return self.steps[0].rows

    @property
    def indexes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.index for step in self.steps if step.index))

    @property
    def reads_everything(self) -> bool:
        """Whether some part reads all objects of a class."""
        return any("Seq Scan" in step.kind for step in self.steps)


def plan_of(value: Any) -> Plan | None:
    """Return the plan in a response to a find or a pipeline with ``explain``, or None."""
    try:
        root = value["results"][0]["QUERY PLAN"][0]["Plan"]
    except (KeyError, IndexError, TypeError):
        return None
    steps = tuple(step for _, step in zip(range(_MOST), _steps(root, 0), strict=False))
    return Plan(steps) if steps else None


def _steps(node: Any, depth: int) -> Iterator[Step]:
    if not isinstance(node, dict) or depth > _DEEPEST:
        return
    yield Step(
        depth,
        str(node.get("Node Type", "")),
        str(node.get("Index Name", "")),
        float(node.get("Total Cost", 0)),
        int(node.get("Plan Rows", 0)),
    )
    for inner in node.get("Plans", ()):
        yield from _steps(inner, depth + 1)
