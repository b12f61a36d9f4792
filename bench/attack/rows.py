"""Running rows: an attack, the victim beside it, memory meanwhile, and the recovery after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from bench.attack import accounts, bodies, floods, long_lists, queries, slow, smuggling, sockets
from bench.attack.attacks import Attack, Row, Tally
from bench.attack.memory import Peak, Usage, usage
from bench.attack.scene import MOUNT, VICTIM, VICTIM_ADDRESS, Scene
from bench.attack.service import Service
from bench.attack.victim import EVENT, Measured, Victim
from bench.attack.wire import Closed, Wire, request

ATTACKS: tuple[type[Attack], ...] = tuple(
    attack
    for module in (slow, floods, bodies, smuggling, queries, long_lists, sockets, accounts)
    for attack in module.ATTACKS
)
MEMORY = 0.5
"""By how much of its idle memory a role may grow in a row, what the row's limits allow aside."""
_BEFORE = 1.0
"""Seconds from the last attacker's connection until the victim is measured."""
_CONNECTING = 10.0
"""Seconds that the attackers may take to connect."""
_RECOVERY = 45.0
"""Seconds that the service may take to answer as before when an attack has ended."""
_WELL = 0.25
_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of the table."""

    name: str
    measured: Measured
    tally: Tally
    before: Usage
    peak: Usage
    idle: Usage
    recovery: float
    verified: Sequence[str]
    p99: float
    allowance: int
    events_p99: float | None

    @property
    def breaches(self) -> list[str]:
        """Targets of correctness and memory that the row missed, each as a sentence."""
        missed = [f"{count} x {error}" for error, count in self.measured.errors.items()]
        missed += [f"{count} x {fault}" for fault, count in self.tally.faults.items()]
        missed += self.verified
        missed += self._too_large()
        if self.recovery >= _RECOVERY:
            missed.append(f"no recovery within {_RECOVERY:.0f} s")
        return missed

    def _too_large(self) -> Iterator[str]:
        """Roles that took too much memory.

        A row isn't charged for what earlier rows left behind, so a role may grow from where it is.
        """
        for role, size in self.peak.roles.items():
            idle = self.idle.roles.get(role, 0.0)
            start = max(idle, self.before.roles.get(role, 0.0))
            most = start + idle * MEMORY + self.allowance
            if size > most:
                yield f"{role} took {size:.0f} MB, at most {most:.0f}"

    @property
    def misses(self) -> list[str]:
        """All targets that the row missed."""
        p99 = self.measured.percentile(0.99)
        late = [f"p99 {p99:.0f} ms, at most {self.p99:.0f}"] if p99 >= self.p99 else []
        if self.events_p99 is not None:
            delay = self.measured.percentile(0.99, EVENT)
            if delay >= self.events_p99:
                late.append(f"p99 of events {delay:.0f} ms, at most {self.events_p99:.0f}")
        return late + self.breaches

    def as_dict(self) -> dict[str, Any]:
        return {
            "attack": self.name,
            "requests": self.measured.requests,
            "kinds": self.measured.figures(),
            "errors": self.measured.errors,
            "connections": self.tally.connections,
            "answers": dict(self.tally.answers),
            "faults": dict(self.tally.faults),
            "memory_mb": dict(self.peak.roles),
            "before_mb": dict(self.before.roles),
            "idle_mb": dict(self.idle.roles),
            "recovery_s": self.recovery,
            "misses": self.misses,
        }


class Nothing(Attack):
    """No attack at all: what the victim measures on a quiet service."""

    name = "none"
    description = "the victim alone"
    attackers = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """What all rows of a run share."""

    service: Service
    victim: Victim
    idle: Usage
    addresses: int

    @classmethod
    def prepare(cls, service: Service, victim: Victim, addresses: int) -> Self:
        """Measure the memory of the service when it has answered for a while."""
        victim.measure(3)
        return cls(service, victim, usage(service.pid), addresses)


async def run(attack: Attack, stage: Stage, number: int, seconds: float) -> Outcome:
    """Run one row. The attack goes on until the victim's last request has started."""
    loop = asyncio.get_running_loop()
    scene = stage.service.scene
    row = Row(scene, number, stage.addresses, time.monotonic() + _CONNECTING + _BEFORE + seconds)
    before = usage(stage.service.pid)
    with Peak(stage.service.pid) as peak:
        attacking = asyncio.ensure_future(attack.run(row))
        while row.tally.connections < attack.attackers and row.left > _BEFORE + seconds:
            await asyncio.sleep(0.05)
        await asyncio.sleep(_BEFORE)
        row.until = time.monotonic() + seconds
        measured = await loop.run_in_executor(
            None, stage.victim.measure, seconds, attack.events_p99 is not None
        )
        await attacking
    ended = time.monotonic()
    await _recovered(scene, ended + _RECOVERY)
    recovery = time.monotonic() - ended
    return Outcome(
        name=attack.name,
        measured=measured,
        tally=row.tally,
        before=before,
        peak=peak.usage,
        idle=stage.idle,
        recovery=recovery,
        verified=await attack.verify(scene),
        p99=attack.p99,
        allowance=attack.allowance,
        events_p99=attack.events_p99,
    )


async def _recovered(scene: Scene, until: float) -> None:
    """Return when the service answers quickly several times in a row, or the time is over."""
    well = 0
    while well < _IN_A_ROW and time.monotonic() < until:
        begin = time.monotonic()
        try:
            async with asyncio.timeout(10), await Wire.open(scene, VICTIM_ADDRESS) as wire:
                path = f"{MOUNT}/classes/{VICTIM}?limit=1"
                answer = await wire.exchange(request("GET", path, scene.client))
            well = well + 1 if answer.status == 200 and time.monotonic() - begin < _WELL else 0
        except (Closed, OSError):
            well = 0
        await asyncio.sleep(0.05)
