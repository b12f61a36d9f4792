"""How many blocks to ask a provider for at once; or contracts of a filter, or calls of a batch.

Providers limit ``eth_getLogs`` in two ways: by the number of blocks, which is a ceiling for ever
(*structural*), and by the size of the answer, which depends on what the blocks hold. ``Ranges``
learns both from what happens: it grows while answers are small, aims at answers of some thousand
logs, halves at a refusal, and now and then tries whether a limit that it has met still holds, less
often each time that it does.
It never asks for so much that an answer would be too large if the densest blocks that it has met
came again; the more answers ago that was, the less it counts.

A refusal that isn't understood may have nothing to do with the range. If half of it is refused as
well, a single block is next: so a provider that refuses everything costs three requests, after
which the range is as large as before. If the block is answered, halving goes on.
"""

from __future__ import annotations

from typing import Final

FIRST_WIDTH: Final = 64  # blocks, when nothing is known
WIDEST: Final = 1_000_000
FEW: Final = 2_000  # logs of one answer: fewer are too few
MANY: Final = 5_000  # more are too many
MOST: Final = 2 * MANY
"""Logs that an answer would have at most if it were as dense as the densest before."""
SLOW: Final = 2.0  # seconds
PROBE_AFTER: Final = 9  # successes at a limit; the next one is tried above it
_LONGEST_PROBE_AFTER: Final = 64 * PROBE_AFTER  # doubled each time that it is refused
_FASTEST: Final = 8  # times as wide as before, at most
_FADING: Final = 0.75  # what the densest blocks count for after each answer


class Ranges:
    """What one reader of logs knows of one provider. Pure: no requests are made here.

    ``width`` is how many blocks to ask for next, always at least 1. ``ceiling`` is the most that
    the provider answers, as far as it's known; it only becomes lower, unless a single block is
    refused as well. ``limit`` is where the last refusal was, halved. The caller says how it went:
    ``succeeded``, ``too_large``, ``refused`` or ``too_slow``.
    """

    __slots__ = (
        *("_answered", "_at_limit", "_before", "_densest", "_is_probe", "_probe_after"),
        *("_refusals", "_suspect", "_width", "ceiling", "limit"),
    )

    def __init__(
        self, width: int = 0, ceiling: int | None = None, limit: int | None = None
    ) -> None:
        self._width = width if width > 0 else FIRST_WIDTH
        self.ceiling = WIDEST if ceiling is None else max(1, min(ceiling, WIDEST))
        self.limit = WIDEST if limit is None else max(1, min(limit, WIDEST))
        self._at_limit = 0
        self._probe_after = PROBE_AFTER
        self._is_probe = False  # whether the width is above a limit that was met
        self._before: tuple[int, int, int] | None = None  # what held before the last refusals
        self._refusals = 0  # in a row that weren't understood, until a block is answered
        self._suspect = 0  # blocks that were refused before a single one was tried
        self._answered = 0  # the most blocks that were answered
        self._densest = 0.0  # logs of a block

    @property
    def width(self) -> int:
        return max(1, min(self._width, self.limit, self.ceiling))

    @property
    def has_answered(self) -> bool:
        return self._answered > 0

    @property
    def is_doubtful(self) -> bool:
        """Whether the last ranges were refused for a reason that isn't understood."""
        return self._refusals > 0 and self._before is not None

    def succeeded(self, blocks: int, logs: int, seconds: float) -> None:
        """``blocks`` were answered with so many logs in this time."""
        self._settle(blocks)
        self._answered = max(self._answered, blocks)
        self._densest = max(self._densest * _FADING, logs / blocks)
        load = max(logs / MANY, seconds / SLOW)
        if load > 1:
            self._width = max(1, min(self._width, int(blocks / load)))
            return
        if blocks < self.width or logs >= FEW:
            # Asked for less than was allowed, or it's right as it is: no reason to grow.
            return
        self._grow(blocks, load)

    def _grow(self, blocks: int, load: float) -> None:
        aim = (FEW + MANY) / 2 / MANY
        size = int(blocks * min(float(_FASTEST), aim / load if load else float(_FASTEST)))
        top = min(self.limit, self.ceiling)
        if size * self._densest > MOST:
            size = int(MOST / self._densest)
        if size <= top:
            self._width = max(self._width, size)
            return
        if blocks < top:
            self._width = top
            return
        self._at_limit += 1
        if self._at_limit >= self._probe_after and blocks < self.ceiling:
            # Halfway to what is known to be refused, or twice as much where nothing is.
            is_limited = self.ceiling < WIDEST
            self.limit = (blocks + self.ceiling + 1) // 2 if is_limited else min(blocks * 2, WIDEST)
            self._width = self.limit
            self._is_probe = not is_limited
            self._at_limit = 0

    def _settle(self, blocks: int) -> None:
        """End a row of refusals: it was the range."""
        if self._suspect:
            self._width = self.limit = max(1, self._suspect // 2)
            self._suspect = 0
        elif blocks > 1:
            self._refusals = 0
        if self._is_probe and blocks >= self.limit:
            self._is_probe, self._probe_after = False, PROBE_AFTER
        self._before = None

    def too_large(self, blocks: int, allowed: int | None = None, *, is_structural: bool) -> bool:
        """``blocks`` were refused; ``allowed`` is what the provider says it would answer. Whether
        asking for fewer is possible: otherwise it was one block already."""
        hint = allowed if allowed is not None and 0 < allowed < blocks else None
        width = hint or blocks // 2
        if self._is_last(blocks):
            return False
        if is_structural:
            # Without a hint it's only known that this much is too much.
            self.ceiling = max(1, min(self.ceiling, hint or blocks - 1))
            if blocks <= self._answered:
                self._answered = 0
            width = max(width, self._answered)
        self._shrink(width)
        if hint is not None and is_structural:
            self.limit = WIDEST  # the ceiling says it all
        return True

    def refused(self, blocks: int) -> bool:
        """``blocks`` were refused, for a reason that isn't understood. As ``too_large``."""
        if self._is_last(blocks):
            return False
        self._refusals += 1
        self._shrink(blocks // 2)
        if self._refusals == 2:
            self._suspect, self._width = blocks, 1
        return True

    def _is_last(self, blocks: int) -> bool:
        """Whether it was a single block, so that the range isn't what is refused."""
        if blocks > 1:
            self._before = self._before or (self._width, self.limit, self.ceiling)
            return False
        if self._before is not None:
            self._width, self.limit, self.ceiling = self._before
            self._before = None
        self._refusals = self._suspect = 0
        return True

    def too_slow(self, blocks: int) -> None:
        """There was no answer for so many blocks in the time that there was."""
        self._shrink(blocks // 2)

    def failed(self, blocks: int) -> None:
        """There was no answer for so many blocks, for a reason that may be any."""
        self._width = max(1, min(self._width, blocks // 2))

    def _shrink(self, width: int) -> None:
        # Two requests of the same width may fail beside each other: that halves once.
        self._width = max(1, min(self._width, width))
        self.limit = max(1, min(self.limit, width))
        self._at_limit = 0
        if self._is_probe:
            self._is_probe = False
            self._probe_after = min(2 * self._probe_after, _LONGEST_PROBE_AFTER)
