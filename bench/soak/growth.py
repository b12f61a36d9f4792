"""What a soak is judged by: growth of what the service holds, failures, and the rate."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench import report

MINUTE: Final = "minute"
"""The field of a sample with the time at which it was taken, in minutes from the first second."""
LIMIT: Final = 0.25  # MiB, or pieces, a minute
LEAST_RISE: Final = 3.0  # MiB, or pieces
SHORTEST: Final = 15.0
"""Minutes from which on growth is judged: before, caches still fill."""
LEAST_RATE: Final = 0.95  # of the target
_ALL: Final = "all processes"
_PRECISE: Final = 100.0  # figures below it are shown with a digit behind the point

RULE: Final = (
    "A figure grows if its median slope (of the slopes between every two samples of the last two "
    f"thirds) is more than {LIMIT} a minute and makes more than {LEAST_RISE:.0f} over that time."
)
NOT_JUDGED: Final[Mapping[str, str]] = {
    "PSS": "PSS divides each page among the processes that map it, those of other programs "
    "included, and PostgreSQL's has the shared buffers that were used so far: it moves "
    "without a leak, at most until the buffers are full and nothing is shared any more. Anonymous "
    "memory is judged instead: a process that stops sharing a page has as much as before.",
    "open files, PostgreSQL": "PostgreSQL's processes keep files of tables open, up to a limit.",
    "append-only file of Redis, MiB": "Redis rewrites the append-only file when it has doubled.",
    _ALL: "A sum: its parts are judged.",
    "load": "Load and speed, not something that is held.",
}
"""Why rows aren't judged, by the reason's key."""
_LOAD: Final = frozenset(
    {
        "requests/s",
        "failed requests",
        "slowest request, ms",
        "messages to sockets",
        "connections of sockets",
        "failed sockets",
    }
)

Sample = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Growth:
    """How a figure moved over the last two thirds of a soak."""

    per_minute: float
    rise: float

    @property
    def is_growth(self) -> bool:
        return self.per_minute > LIMIT and self.rise > LEAST_RISE


def growth(points: Sequence[tuple[float, float]]) -> Growth:
    """The growth of a figure by its samples: pairs of a minute and a value, in order of time.

    The median of all slopes (Theil and Sen) is that of a leak however small the figure, and isn't
    moved by single samples, such as those that a fork of Redis or a vacuum is in.
    """
    judged = points[len(points) // 3 :]
    slopes = [
        (later - value) / (end - minute)
        for (minute, value), (end, later) in itertools.combinations(judged, 2)
    ]
    per_minute = statistics.median(slopes) if slopes else 0.0
    return Growth(per_minute, per_minute * (judged[-1][0] - judged[0][0]))


def reason_not_judged(name: str) -> str | None:
    """The key of ``NOT_JUDGED`` for a row; None if its growth is judged."""
    if name in NOT_JUDGED:
        return name
    if name in _LOAD:
        return "load"
    if name.startswith("PSS, "):
        return "PSS"
    return _ALL if name.endswith(f", {_ALL}") else None


def growing(samples: Sequence[Sample]) -> list[str]:
    """The names of judged figures that grow. A figure that a sample doesn't have is 0 there."""
    return [
        name
        for name in _names(samples)
        if reason_not_judged(name) is None and growth(_points(samples, name)).is_growth
    ]


def problems(
    samples: Sequence[Sample], target: float, failures: int, failed_sockets: int, restarts: int
) -> list[str]:
    """What the soak fails for; empty if for nothing. ``target`` is in requests a second."""
    texts = []
    rate = statistics.fmean(sample["requests/s"] for sample in samples)
    if failures:
        texts.append(f"{failures:,} requests failed")
    if failed_sockets:
        texts.append(f"{failed_sockets:,} connections of sockets failed")
    if restarts:
        texts.append(f"{restarts:,} processes ended and were restarted")
    if rate < LEAST_RATE * target:
        texts.append(
            f"{rate:,.0f} requests/s are less than {LEAST_RATE:.0%} of the target, {target:,.0f}"
        )
    if is_long_enough(samples):
        texts += [f"{name} grows" for name in growing(samples)]
    return texts


def is_long_enough(samples: Sequence[Sample]) -> bool:
    """Whether growth is judged."""
    return samples[-1][MINUTE] >= SHORTEST - 0.5


def table(samples: Sequence[Sample]) -> str:
    """The thirds side by side, the slope, and whether it is growth; below it the rule."""
    third = len(samples) // 3
    parts = [samples[:third], samples[third : 2 * third], samples[2 * third :]]
    heads = ("first third", "second", "last", "a minute", "grows")
    lines = [report.line("medians", *heads), report.ruler(len(heads) + 1)]
    reasons: dict[str, int] = {}
    for name in _names(samples):
        medians = [statistics.median(sample.get(name, 0.0) for sample in part) for part in parts]
        change = growth(_points(samples, name))
        reason = reason_not_judged(name)
        if reason is not None:
            verdict = f"not judged ({reasons.setdefault(reason, len(reasons) + 1)})"
        elif not is_long_enough(samples):
            verdict = "too short"
        else:
            verdict = "**yes**" if change.is_growth else "no"
        cells = [_figure(median) for median in medians]
        lines.append(report.line(name, *cells, f"{change.per_minute:+.2f}", verdict))
    notes = [f"{number}. {NOT_JUDGED[reason]}" for reason, number in reasons.items()]
    rule = RULE if is_long_enough(samples) else f"{RULE} Not judged before {SHORTEST:.0f} minutes."
    return "\n".join([*lines, "", rule, "", *notes])


def _names(samples: Sequence[Sample]) -> list[str]:
    names = dict.fromkeys(name for sample in samples for name in sample)
    return [name for name in names if name != MINUTE]


def _points(samples: Sequence[Sample], name: str) -> list[tuple[float, float]]:
    return [(sample[MINUTE], sample.get(name, 0.0)) for sample in samples]


def _figure(value: float) -> str:
    return f"{value:,.1f}" if 0 < value < _PRECISE and value != int(value) else f"{value:,.0f}"
