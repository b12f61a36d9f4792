"""Which index to build for the queries of a class, and whether one that was built is worth it.

Pure decisions over evidence that ``objects.learned`` collects. Times are in seconds, sizes in
bytes. The limits are those that docs/indexes.md describes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from objects.core.indexes.shapes import IndexFields, Shape, candidates, is_part_of
from objects.core.schema.definition import ClassSchema

MAX_LEARNED: Final = 8
"""Learned indexes of one class."""
MAX_SHARE: Final = 0.5
"""Size of the learned indexes of a class, as a share of its table's."""
MIN_ROWS: Final = 5_000
MIN_CALLS: Final = 20
MIN_SECONDS: Final = 1.0
MIN_MEAN: Final = 0.005
MIN_MEAN_EQUALITY: Final = 0.025
"""For queries that the index of equality may serve already: how many rows they read is unknown."""
MIN_GAIN: Final = 5.0
"""How many times as long as with an index a query has to take."""
_BASE: Final = 0.0005
_EACH: Final = 0.00002
"""Seconds that a served query takes, and for each result."""
_MAX_RESULT_SHARE: Final = 0.1

MIN_TRIAL_CALLS: Final = 20
_WORTH: Final = 0.5
"""With the index, a query takes at most this share of the time before."""
_HARM: Final = 2.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Queries of one shape: how many there were, the seconds and the results of all of them."""

    calls: int = 0
    seconds: float = 0.0
    results: int = 0

    @property
    def mean(self) -> float:
        """Seconds of one query; 0 without any."""
        return self.seconds / self.calls if self.calls else 0.0

    @property
    def milliseconds(self) -> float:
        """Milliseconds of one query."""
        return self.mean * 1000

    @property
    def mean_results(self) -> float:
        return self.results / self.calls if self.calls else 0.0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An index that queries of a shape would be faster with."""

    fields: IndexFields
    shape: Shape
    cost: Cost


def suggestions(
    schema: ClassSchema,
    rows: float,
    costs: Mapping[Shape, Cost],
    existing: Iterable[IndexFields],
    refused: Collection[IndexFields] = (),
) -> list[Suggestion]:
    """Return the indexes to build for a class, the most valuable first.

    ``rows`` is the number of objects, about. ``costs`` are those of a recent time, with the indexes
    that are there. ``existing`` are the fields of the class's indexes, declared and learned;
    ``refused`` those of indexes that were built in vain or can't be built.
    """
    if rows < MIN_ROWS:
        return []
    present = tuple(existing)
    by_fields: dict[IndexFields, Suggestion] = {}
    for shape, cost in sorted(costs.items(), key=lambda item: -item[1].seconds):
        if not is_costly(shape, cost, rows):
            continue
        possible = candidates(shape, schema)
        if any(is_part_of(fields, index) for fields in possible[:1] for index in present):
            continue
        fields = next(
            (
                fields
                for fields in possible
                if fields not in refused and not any(is_part_of(fields, index) for index in present)
            ),
            None,
        )
        if fields is not None:
            by_fields.setdefault(fields, Suggestion(fields, shape, cost))
    return [*by_fields.values()]


def is_costly(shape: Shape, cost: Cost, rows: float) -> bool:
    """Return whether queries of the shape are frequent and much slower than with an index."""
    least = MIN_MEAN_EQUALITY if shape.fields("equality") else MIN_MEAN
    served = _BASE + _EACH * cost.mean_results
    return (
        cost.calls >= MIN_CALLS
        and cost.seconds >= MIN_SECONDS
        and cost.mean >= max(least, MIN_GAIN * served)
        and cost.mean_results <= _MAX_RESULT_SHARE * rows
    )


def fits(estimated: float, other_sizes: Sequence[float], table: float) -> bool:
    """Return whether an index of the estimated size is within the limits of a class.

    ``other_sizes`` are the sizes of its other learned indexes, ``table`` is that of its objects.
    """
    return len(other_sizes) < MAX_LEARNED and estimated + sum(other_sizes) <= MAX_SHARE * table


@dataclass(frozen=True, slots=True)
class Trial:
    """The cost of a shape before an index was built, and since then."""

    before: Cost
    after: Cost

    @property
    def is_complete(self) -> bool:
        return min(self.before.calls, self.after.calls) >= MIN_TRIAL_CALLS

    @property
    def gain(self) -> float:
        """Seconds that the index has saved; negative for a loss."""
        return (self.before.mean - self.after.mean) * self.after.calls


def verdict(own: Trial, other_trials: Iterable[Trial]) -> str | None:
    """Return why an index isn't worth keeping; None if it is, or if that isn't known yet.

    ``own`` is the shape that it was built for, ``other_trials`` the class's other shapes that use
    one of its fields: PostgreSQL may choose it for them where another plan is faster.
    """
    if not own.is_complete:
        return None
    if own.after.mean > _WORTH * own.before.mean:
        return "the queries that it was built for are not much faster with it"
    lost = sum(
        -trial.gain
        for trial in other_trials
        if trial.is_complete
        and trial.after.mean > _HARM * trial.before.mean
        and trial.after.mean >= MIN_MEAN
    )
    if lost > own.gain:
        return "other queries lose more by it than it saves"
    return None
