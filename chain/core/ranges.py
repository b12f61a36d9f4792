"""How many blocks to ask a provider for at once.

Providers limit ``eth_getLogs`` in two ways: by the number of blocks, which is a ceiling for ever
(*structural*), and by the size of the answer, which depends on what the blocks hold. ``Ranges``
learns both from what happens: it grows while answers are small, aims at answers of some thousand
logs, halves at a refusal, and now and then tries whether a limit that it has met still holds.
It never asks for so much that an answer would be too large if the densest blocks that it has met
came again; the more answers ago that was, the less it counts.
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
_FASTEST: Final = 8  # times as wide as before, at most
_FADING: Final = 0.75  # what the densest blocks count for after each answer


class Ranges:
    """What one reader of logs knows of one provider. Pure: no requests are made here.

    ``width`` is how many blocks to ask for next, always at least 1. ``ceiling`` is the most that
    the provider answers, as far as it's known; it only ever becomes lower. The caller says how
    it went: ``succeeded``, ``too_large`` or ``too_slow``.
    """

    __slots__ = ("_answered", "_at_limit", "_densest", "_limit", "_width", "ceiling")

    def __init__(self, width: int = 0, ceiling: int | None = None) -> None:
        self._width = width if width > 0 else FIRST_WIDTH
        self.ceiling = WIDEST if ceiling is None else max(1, min(ceiling, WIDEST))
        self._limit = WIDEST  # where the last refusal was, halved
        self._at_limit = 0
        self._answered = 0  # the most blocks that were answered
        self._densest = 0.0  # logs of a block

    @property
    def width(self) -> int:
        return max(1, min(self._width, self.ceiling))

    @property
    def has_answered(self) -> bool:
        return self._answered > 0

    def succeeded(self, blocks: int, logs: int, seconds: float) -> None:
        """``blocks`` were answered with so many logs in this time."""
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
        top = min(self._limit, self.ceiling)
        if size * self._densest > MOST:
            size = int(MOST / self._densest)
        if size <= top:
            self._width = max(self._width, size)
            return
        if blocks < top:
            self._width = top
            return
        self._at_limit += 1
        if self._at_limit >= PROBE_AFTER and blocks < self.ceiling:
            # Halfway to what is known to be refused, or twice as much where nothing is.
            is_limited = self.ceiling < WIDEST
            self._limit = (
                (blocks + self.ceiling + 1) // 2 if is_limited else min(blocks * 2, WIDEST)
            )
            self._width = self._limit
            self._at_limit = 0

    def too_large(self, blocks: int, allowed: int | None = None, *, is_structural: bool) -> bool:
        """``blocks`` were refused; ``allowed`` is what the provider says it would answer. Whether
        asking for fewer is possible: otherwise it was one block already."""
        hint = allowed if allowed is not None and 0 < allowed < blocks else None
        width = hint or blocks // 2
        if is_structural:
            # Without a hint it's only known that this much is too much.
            self.ceiling = max(1, min(self.ceiling, hint or blocks - 1))
            if blocks <= self._answered:
                self._answered = 0
            width = max(width, self._answered)
        self._shrink(width)
        if hint is not None and is_structural:
            self._limit = WIDEST  # the ceiling says it all
        return blocks > 1

    def too_slow(self, blocks: int) -> None:
        """There was no answer for so many blocks in the time that there was."""
        self._shrink(blocks // 2)

    def _shrink(self, width: int) -> None:
        # Two requests of the same width may fail beside each other: that halves once.
        self._width = max(1, min(self._width, width))
        self._limit = max(1, min(self._limit, width))
        self._at_limit = 0
