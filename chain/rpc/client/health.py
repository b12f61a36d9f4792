"""How a provider has been lately, as one process knows it, and when it is left alone.

A provider that asks for less is left alone for as long as it says, otherwise for 0.1 s, doubled
each time up to 5 s. One that fails three times in a row is left alone for a minute. One that lags,
answers for another network, differs from the majority, is slow or can't be compared is left out for
a while. One that refuses what others answer is used after them for a while.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time
from typing import Final, Literal

FAILURES: Final = 3  # in a row, until a provider is left alone
FAILURE_PAUSE: Final = 60.0
LONGEST_REQUESTED_PAUSE: Final = 300.0
# Seconds between looks at a network all of whose providers fail: doubled each time.
PROBE_EVERY: Final = 3.0
_LONGEST_PROBE: Final = 15.0
_SHORTEST_SLOW, _LONGEST_SLOW = 0.1, 5.0
_WEIGHT_OF_LAST = 0.2  # in the moving average
_LONGEST_AVOIDANCE = 600.0
_TROUBLE_KEPT = 600.0  # seconds, of a provider that answers again
HEAD_FRESH: Final = 60.0  # seconds

Cause = Literal["", "rate", "failure", "lag", "wrong", "differs", "slow"]
"""Why a provider is paused. Only what has failed is worth a look before the pause is over."""


@dataclass(frozen=True, slots=True)
class ProviderHealth:
    """How a provider is, for operators. ``latency`` is in milliseconds, ``lag`` in blocks behind
    the highest head of the providers that answer, None for one that doesn't; ``failures`` are
    those in a row. ``source`` is where the provider comes from: ``provider`` (a row), ``setting``
    or ``public`` (the network's own)."""

    name: str
    source: str
    weight: int
    head: int | None = None
    lag: int | None = None
    latency: float | None = None
    failures: int = 0
    paused_until: datetime | None = None
    trouble: str | None = None
    checked_at: datetime | None = None


class Health:
    """The health of one provider. Safe to be used by several threads."""

    def __init__(self, now: Callable[[], float] = time) -> None:
        self._now = now
        self._lock = threading.Lock()
        self.latency: float | None = None
        self.failures = 0
        self.head: int | None = None
        self.head_at = 0.0
        self.paused_until = 0.0
        self.cause: Cause = ""
        self.trouble: str | None = None
        self.changed_at = 0.0
        self._refusals = 0
        self._refused_at = self._avoided_until = 0.0
        self._trouble_at = 0.0
        self._slow = 0
        self._probed_at = 0.0
        self._is_learned = False  # whether another process has said to leave it alone

    @property
    def is_paused(self) -> bool:
        return self.paused_until > self._now()

    @property
    def is_avoided(self) -> bool:
        """Whether others are to be used first, since they answer what this provider refuses. It
        keeps its say in comparisons, and is used if there is no other."""
        return self._avoided_until > self._now()

    @property
    def fresh_head(self) -> int | None:
        """The head that was seen in the last minute."""
        return self.head if self._now() - self.head_at <= HEAD_FRESH else None

    def answered(self, seconds: float) -> None:
        """Note a response of any kind after so many seconds."""
        with self._lock:
            last = seconds * 1000
            before = last if self.latency is None else self.latency
            self.latency = before + _WEIGHT_OF_LAST * (last - before)
            self.failures = self._slow = 0
            self.changed_at = now = self._now()
            if self.cause in ("rate", "failure"):
                self.paused_until, self.cause = 0.0, ""
            if now - self._trouble_at > _TROUBLE_KEPT and not self.is_paused:
                self.trouble = None

    def failed(self, text: str, *, for_good: bool = False) -> None:
        """No usable answer came. ``for_good`` is what a second try wouldn't change."""
        with self._lock:
            self.failures += 1
            self._note(text)
            if for_good or self.failures >= FAILURES:
                self._pause("failure", FAILURE_PAUSE)
                self._probed_at = self._now()

    def slowed(self, text: str, after: float | None) -> None:
        """The provider asks for fewer requests, and for a pause of ``after`` seconds or any."""
        with self._lock:
            if after is None:
                after = min(_LONGEST_SLOW, _SHORTEST_SLOW * 2.0**self._slow)
                after *= random.uniform(0.75, 1.25)
            self._slow = min(self._slow + 1, 16)
            self._note(text)
            self._pause("rate", min(after, LONGEST_REQUESTED_PAUSE))

    def refused(self, text: str) -> None:
        """Note an error in answer to what another provider has answered. From the third one on,
        with less than a minute between them, others are used first: for a minute, doubled each time
        up to ten."""
        with self._lock:
            now = self._now()
            if now - max(self._avoided_until, self._refused_at) > FAILURE_PAUSE:
                self._refusals = 0
            self._refusals += 1
            self._refused_at = now
            self._note(text)
            if self._refusals >= FAILURES:
                pause = FAILURE_PAUSE * 2.0 ** min(self._refusals - FAILURES, 8)
                self._avoided_until = now + min(pause, _LONGEST_AVOIDANCE)

    def leave_out(self, text: str, cause: Cause, seconds: float) -> None:
        """Don't ask this provider for a while."""
        with self._lock:
            self._note(text)
            self._pause(cause, seconds)

    def note(self, text: str) -> None:
        """What is wrong with the provider, without leaving it alone."""
        with self._lock:
            self._note(text)

    def saw_head(self, height: int) -> None:
        with self._lock:
            self.head = height
            self.head_at = self.changed_at = self._now()
            if self.cause == "lag":
                self.paused_until, self.cause = 0.0, ""

    def forget_head(self) -> None:
        """The head that was seen is not to be believed."""
        with self._lock:
            self.head_at = 0.0

    def probe(self) -> bool:
        """Whether the caller may be the one who looks before a failure's pause is over."""
        with self._lock:
            now = self._now()
            every = min(
                _LONGEST_PROBE, PROBE_EVERY * 2.0 ** max(0, min(self.failures, 9) - FAILURES)
            )
            if self.cause != "failure" or now - self._probed_at < every:
                return False
            self._probed_at = now
            return True

    def learn(self, paused_until: float, at: float) -> None:
        """What another process has noted since: leave it alone until then, or no more. What this
        process has found out itself, others can't take back."""
        with self._lock:
            if at <= self.changed_at or self.cause not in ("", "rate", "failure"):
                return
            if paused_until > self._now() and paused_until > self.paused_until:
                self.paused_until, self.cause, self._is_learned = paused_until, "failure", True
            elif paused_until == 0.0 and self._is_learned:
                self.paused_until, self.cause, self._is_learned = 0.0, "", False

    def pause_left(self) -> float:
        return max(0.0, self.paused_until - self._now())

    def _note(self, text: str) -> None:
        self.trouble = text
        self._trouble_at = self.changed_at = self._now()

    def _pause(self, cause: Cause, seconds: float) -> None:
        until = self._now() + seconds
        if until > self.paused_until:
            self.paused_until, self.cause, self._is_learned = until, cause, False


def moment(seconds: float) -> datetime | None:
    """A time since the epoch as a moment; None for none."""
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
