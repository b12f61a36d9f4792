"""What a comparison of stored events with the chain has found."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from chain.core.blocks.differences import Difference, Identity, identity_of

_SHOWN: Final = 100  # events of each kind that are listed


@dataclass
class Findings:
    """What a comparison of the blocks ``first`` to ``last`` has found; it has come to ``reached``.

    The lists hold ``[block, index in the block, transaction]`` of the first hundred events each,
    ``counts`` all of them. ``unclear`` are blocks that a provider contradicts itself about; nothing
    is changed in them. ``undated`` events lack the time of their block; ``dated`` have got it now.
    """

    first: int
    last: int
    reached: int
    events: int = 0
    mended: int = 0
    undated: int = 0
    dated: int = 0
    missing: list[list[Any]] = field(default_factory=list)
    superfluous: list[list[Any]] = field(default_factory=list)
    different: list[list[Any]] = field(default_factory=list)
    unclear: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(
        default_factory=lambda: {"missing": 0, "superfluous": 0, "different": 0}
    )

    @property
    def is_clean(self) -> bool:
        return not self.unclear and not any(self.counts.values())

    def add(self, part: Findings) -> None:
        """Add what a comparison of other blocks has found; ``reached`` becomes the higher one."""
        self.reached = max(self.reached, part.reached)
        self.events += part.events
        self.mended += part.mended
        self.undated += part.undated
        self.dated += part.dated
        self.unclear = sorted({*self.unclear, *part.unclear})
        for kind, count in part.counts.items():
            self.counts[kind] += count
            listed: list[list[Any]] = getattr(self, kind)
            listed += getattr(part, kind)[: _SHOWN - len(listed)]

    def as_json(self) -> dict[str, Any]:
        return {
            "from": self.first,
            "to": self.last,
            "reached": self.reached,
            "events": self.events,
            **self.counts,
            "mended": self.mended,
            "undated": self.undated,
            "dated": self.dated,
            "unclear": len(self.unclear),
            "examples": {
                "missing": self.missing,
                "superfluous": self.superfluous,
                "different": self.different,
                "unclear": self.unclear[:_SHOWN],
            },
        }

    def note(
        self, difference: Difference, gone: Collection[Identity], sent: Callable[..., str]
    ) -> None:
        for kind, places in (
            (
                "missing",
                [(*identity_of(row)[:2], row.transaction_hash) for row in difference.missing],
            ),
            (
                "different",
                [(*identity_of(row)[:2], row.transaction_hash) for row in difference.different],
            ),
            (
                "superfluous",
                [
                    (*identity[:2], sent(identity))
                    for identity in difference.superfluous
                    if identity in gone
                ],
            ),
        ):
            self.counts[kind] += len(places)
            listed: list[list[Any]] = getattr(self, kind)
            listed += [[*place] for place in places[: _SHOWN - len(listed)]]
