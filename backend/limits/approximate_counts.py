"""Approximate counting, for limits that apply to every request.

A call to Redis costs more than a whole get by id, so each process counts in its memory and calls
Redis for busy callers only. In each window, a process admits 1/``SHARE`` of a caller's limit
without a call. Then it reserves requests in Redis in blocks of 1/``BLOCK`` of the limit, and admits
those without a call each. The first reservation also reports the requests admitted before. The
processes together exceed the limit by at most 1/``SHARE`` of it each. A refused caller costs one
call a second.

Memory is bounded: tallies are stored in two generations of ``MOST`` each, and the older generation
is dropped when the younger one is full. A caller whose tally is dropped starts a new one.

Without Redis each process applies the whole limit on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from threading import Lock
from time import monotonic
from typing import NamedTuple

from backend.limits.bucket_names import NEARLY, Names, Who
from backend.limits.exact_counts import Bucket, Counter
from backend.logs.setup import get_logger
from backend.settings.rate_limits import Rule

SHARE = 20
"""A process admits 1/``SHARE`` of a limit without a call to Redis."""
BLOCK = 50
"""One call to Redis reserves 1/``BLOCK`` of a limit."""
MOST = 10_000
"""Tallies in one generation."""
_RETRY_AFTER = 1.0  # seconds between calls for a caller that is refused
_ATTEMPTS = 3
_WARN_EVERY = 60.0  # seconds

log = get_logger("limits")


class ApproximateClaim(NamedTuple):
    """The ``number`` of requests of one caller under one rule.

    ``key`` identifies the caller and the rule in the process's memory, ``who`` the caller in Redis.
    """

    rule: Rule
    key: str
    number: int
    who: Who


class Outcome(NamedTuple):
    """Whether a request passes, and the state of the limit with the fewest requests left."""

    passes: bool
    rule: Rule
    remaining: int
    reset: float  # seconds


class _Tally:
    """The requests of one caller under one rule, in one process and window."""

    __slots__ = (
        "ask_at",
        "ends",
        "full_until",
        "granted",
        "is_low",
        "left",
        "remains",
        "unreported",
    )

    def __init__(self) -> None:
        self.ends = 0.0
        self.left = 0  # requests that may pass without a call
        self.granted = 0  # requests, in this window
        self.unreported = 0  # granted requests that Redis hasn't counted yet
        self.remains = 0  # requests left in Redis after the last call
        self.is_low = False  # less than half of the limit remains
        self.full_until = 0.0
        self.ask_at = 0.0


class ApproximateCounter:
    """The tallies of one process, shared by its threads.

    ``counter`` is None where nothing may wait for Redis, such as an event loop: each process
    applies the whole limit there. ``bucket_of`` returns the bucket of a rule and a caller; it is
    called rarely, because it computes a hash. Tests pass ``clock``, which also replaces Redis's.
    """

    def __init__(
        self,
        counter: Counter | None,
        bucket_of: Callable[[Rule, Who], Bucket],
        names: Names | None = None,
        *,
        clock: Callable[[], float] | None = None,
        most: int = MOST,
    ) -> None:
        self._counter = counter
        self._bucket_of = bucket_of
        self._names = names
        self._clock = clock or monotonic
        self._has_own_clock = clock is not None
        self._most = most
        self._lock = Lock()
        self._warn_at = 0.0
        self._young: dict[str, _Tally] = {}
        self._old: dict[str, _Tally] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def admit(self, claims: Sequence[ApproximateClaim]) -> Outcome | None:
        """Count a request under all of its rules, or under none if one of them refuses it.

        Returns None where a request passes and at least half of each limit remains.
        """
        now = self._clock()
        tallies = []
        low = False
        with self._lock:
            young = self._young
            for _, key, number, _ in claims:
                tally = young.get(key)
                if tally is None or tally.left < number or tally.ends <= now:
                    break
                tallies.append(tally)
            else:
                for place, tally in enumerate(tallies):
                    tally.left -= claims[place].number
                    low = low or tally.is_low
                if not low:
                    return None
        if low:
            return self._scarcest(claims, tallies, now)
        return self._admit_with_call(claims, now)

    def _admit_with_call(self, claims: Sequence[ApproximateClaim], now: float) -> Outcome | None:
        tallies = [self._tally(claim.key) for claim in claims]
        for _ in range(_ATTEMPTS):
            short = self._take(claims, tallies, now)
            if not short:
                return self._scarcest(claims, tallies, now)
            for claim, tally in short:
                if not self._refill(claim, tally, now):
                    reset = max(0.0, tally.full_until - now)
                    return Outcome(False, claim.rule, 0, reset)
        # Other threads spent each block first. Admit this request uncounted rather than retry.
        return None

    def _tally(self, key: str) -> _Tally:
        with self._lock:
            tally = self._young.get(key)
            if tally is None:
                tally = self._old.pop(key) if key in self._old else _Tally()
                if len(self._young) >= self._most:
                    self._old, self._young = self._young, {}
                self._young[key] = tally
            return tally

    def _take(
        self, claims: Sequence[ApproximateClaim], tallies: Sequence[_Tally], now: float
    ) -> list[tuple[ApproximateClaim, _Tally]]:
        """Spend all claims and return []; or spend none and return the tallies that are short."""
        with self._lock:
            short = [
                (claim, tally)
                for claim, tally in zip(claims, tallies, strict=True)
                if tally.left < claim.number or tally.ends <= now
            ]
            if not short:
                for claim, tally in zip(claims, tallies, strict=True):
                    tally.left -= claim.number
            return short

    def _refill(self, claim: ApproximateClaim, tally: _Tally, now: float) -> bool:
        """Reserve requests for a claim; False if the limit is reached."""
        rule, number = claim.rule, claim.number
        with self._lock:
            if tally.ends <= now:
                free = rule.count // SHARE
                tally.ends = now + rule.window / 1000
                tally.left = tally.granted = tally.unreported = free
                tally.is_low = False
            if tally.left >= number:
                return True
            if now < tally.ask_at:
                return False
            block_size = max(number - tally.left, rule.count // BLOCK)
            spent, tally.unreported = tally.unreported, 0
            # Those of calls under way count as granted: threads share the room without Redis.
            own_room = max(0, rule.count - tally.granted)
            tally.granted += block_size
            ends = tally.ends
        # Outside of the lock, because the call may take as long as Redis does.
        answer, bucket = None, None
        if self._counter is not None:
            bucket = self._bucket_of(rule, claim.who)
            when = now if self._has_own_clock else None
            answer = self._counter.lease(bucket, spent, block_size, now=when)
        with self._lock:
            if answer is None:
                granted, remains = min(block_size, own_room), max(0, own_room - block_size)
                more = tally.ends - now
                tally.unreported += spent + granted
            else:
                granted, level = answer
                remains, more = level.remains, level.more / 1000
            tally.left += granted
            # In a new window, nothing of this call has been counted.
            tally.granted += granted if tally.ends != ends else granted - block_size
            tally.remains = remains
            tally.is_low = 2 * (remains + tally.left) < rule.count
            tally.full_until = now + more
            enough = tally.left >= number
            if not enough:
                tally.ask_at = now + min(more, _RETRY_AFTER)
        if not enough:
            self._note_refusal(claim, now)
        if self._names is not None and bucket and remains <= rule.count * (1 - NEARLY):
            self._names.keep([(bucket, claim.who)])
        return enough

    def _note_refusal(self, claim: ApproximateClaim, now: float) -> None:
        if now < self._warn_at:
            return
        self._warn_at = now + _WARN_EVERY
        scope, name = claim.who[0]
        hint = {"proxy": name} if scope == "ip" and _is_private(name) else {}
        log.warning(
            "an approximate limit rejects requests"
            + (": if they come through your proxy, list it in TRUSTED_PROXIES" if hint else ""),
            paths=", ".join(claim.rule.paths),
            per=", ".join(claim.rule.per),
            **hint,
        )

    def _scarcest(
        self, claims: Sequence[ApproximateClaim], tallies: Sequence[_Tally], now: float
    ) -> Outcome | None:
        outcome: Outcome | None = None
        for claim, tally in zip(claims, tallies, strict=True):
            if not tally.is_low:
                continue
            remaining = tally.remains + tally.left
            if outcome is None or remaining < outcome.remaining:
                reset = max(0.0, tally.full_until - now)
                outcome = Outcome(True, claim.rule, remaining, reset)
        return outcome


def _is_private(network: str) -> bool:
    try:
        return ip_address(network).is_private
    except ValueError:
        return False
