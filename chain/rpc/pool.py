"""The providers of a network as this process knows them, and which of them gets a request.

One provider is kept for half a minute, drawn by weight and quickness, since two may be at
different heights. A weight of 0 means: only when no other is available.

A provider is left out here if it lags, is slow or has another network's id; by
``client.health`` if it fails or limits the rate; by ``agreement`` if it contradicts the others. One
that refuses what others answer (``requests``) comes after them.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Final

from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from chain.core.comparisons import Comparisons
from chain.core.failures import NodeFailure, TryAgain
from chain.core.node import Number
from chain.rpc.client.budget import Budget
from chain.rpc.client.health import Health
from chain.rpc.client.http_node import HttpNode
from chain.rpc.client.json_rpc import Endpoint
from chain.rpc.endpoints import Given, given_for

KEPT: Final = 30.0  # seconds
_LAG_PAUSE = 10.0
_WRONG_PAUSE = 60.0
CONFIRMED_FOR: Final = 60.0
"""Seconds until the chain id of a provider is requested again."""
_PROBE_PATIENCE = 3.0
LONGEST_STEP: Final = 5.0
"""Seconds that the requests of one step may take while another provider can be used."""
_REQUESTS = 6
_SLOW_PAUSE = 60.0

log = get_logger("chain")


class WrongNetwork(TryAgain):
    """The provider answers for another network."""


class Member:
    """One provider of a network in this process."""

    def __init__(self, network_id: int, configured: Given) -> None:
        self.network_id = network_id
        self.given = configured
        self.name = configured.name
        self.health = Health()
        self.reported_at = 0.0
        self.reported_state: tuple[str, bool] = ("", False)
        self.differs_since: float | None = None  # in comparisons with another provider
        self.comparisons = Comparisons()
        self.tags = Comparisons()  # how often its safe and final block were requested in vain
        budget = None
        if configured.requests_per_second:
            budget = Budget(
                f"{configured.source}:{configured.row or configured.name}",
                configured.requests_per_second,
            )
        self.endpoint = Endpoint(
            configured.url or "",
            timeout=service_settings.RPC_TIMEOUT,
            batch_size=configured.batch_size,
            health=self.health,
            budget=budget,
        )
        self._confirmed_at: float | None = None
        self._confirmed_connection = 0

    def node(self, seconds: float, *, on_head: Callable[[int], None] | None = None) -> HttpNode:
        """The provider for so many seconds, with its chain id confirmed (see ``confirm``) before
        and after each request. Raises ``TryAgain``."""
        note = on_head or self.health.saw_head
        deadline = monotonic() + seconds
        self.confirm(seconds, only_if_due=True)
        return HttpNode(
            self.network_id,
            self.name,
            self.endpoint,
            deadline=deadline,
            on_head=note,
            confirm=self.confirm,
        )

    def confirm(self, seconds: float, *, only_if_due: bool = False) -> None:
        """Request the provider's chain id. Raises ``TryAgain``: its subclass ``WrongNetwork`` if
        the provider is of another network, which leaves it alone for a minute.

        It is due a minute after the last time, and after a connection was lost: another node may
        answer at the address since.
        """
        if only_if_due and self._is_confirmed():
            return
        self._confirmed_at = None
        reconnections = self.endpoint.reconnections
        self._verify(min(seconds, service_settings.RPC_TIMEOUT))
        self._confirmed_at, self._confirmed_connection = monotonic(), reconnections

    def _is_confirmed(self) -> bool:
        return (
            self._confirmed_at is not None
            and monotonic() - self._confirmed_at < CONFIRMED_FOR
            and self._confirmed_connection == self.endpoint.reconnections
            and self.health.cause != "failure"
        )

    def differs_for(self) -> float:
        """Seconds since this provider began to differ from another; it does so now."""
        if self.differs_since is None:
            self.differs_since = monotonic()
        return monotonic() - self.differs_since

    def _verify(self, seconds: float) -> None:
        if self.health.cause == "failure":
            seconds = min(seconds, _PROBE_PATIENCE)
        try:
            response = self.endpoint.call(("eth_chainId", ()), Number, seconds=seconds)
            chain_id = int(response, 16)
        except TryAgain:
            raise
        except NodeFailure as failure:
            self.health.refused(f"no chain id: {failure}")
            raise TryAgain("no chain id") from None
        if chain_id != self.network_id:
            text = f"answers for network {chain_id}, not for {self.network_id}"
            self.health.leave_out(text, "wrong", _WRONG_PAUSE)
            log.error(
                "a provider is of another network",
                network=self.network_id,
                provider=self.name,
                found=chain_id,
            )
            raise WrongNetwork(text)


class Pool:
    """The members of one network."""

    def __init__(self, network_id: int) -> None:
        self.network_id = network_id
        self._lock = threading.Lock()
        self._members: dict[tuple[str, str], Member] = {}
        self._kept: Member | None = None
        self._kept_until = 0.0
        self.witnessed = -1
        """The highest block that two members have had alike, of the chain that is read."""

    def members(self) -> list[Member]:
        """Those that are set up now, with what other processes have noted of them."""
        configured = [
            endpoint for endpoint in given_for(self.network_id) if endpoint.url is not None
        ]
        if not configured:
            _pools.pop(self.network_id, None)  # any number may be asked for
        with self._lock:
            before = self._members
            self._members = {}
            for endpoint in configured:
                key = (endpoint.source, endpoint.name)
                member = before.get(key)
                if member is None or member.given != endpoint:
                    member = Member(self.network_id, endpoint)
                self._members[key] = member
                if endpoint.checked_at is not None:
                    paused = endpoint.paused_until.timestamp() if endpoint.paused_until else 0.0
                    member.health.learn(paused, endpoint.checked_at.timestamp())
            return [*self._members.values()]

    def known(self) -> list[Member]:
        """Those of the last ``members``."""
        with self._lock:
            return [*self._members.values()]

    def choose(self, members: Sequence[Member], excluded: Collection[Member]) -> Member | None:
        """The one to ask, of those that aren't left alone; None if there is none.

        If all have failed, one caller in a few seconds is given one of them to look.
        """
        usable = [
            member for member in members if member not in excluded and not member.health.is_paused
        ]
        if not usable:
            behind = [member for member in members if member.health.cause in ("lag", "slow")]
            for member in behind:
                if member not in excluded:
                    return member
            if excluded:
                return None
            return next((member for member in members if member.health.probe()), None)
        with self._lock:
            usable = [member for member in usable if not member.health.is_avoided] or usable
            if self._kept in usable and monotonic() < self._kept_until:
                return self._kept
            usable = [member for member in usable if member.given.weight] or usable
            choice = random.choices(usable, [_pull(member) for member in usable])[0]
            if not excluded:
                self._kept, self._kept_until = choice, monotonic() + KEPT
            return choice

    def choose_another(self) -> None:
        """Request from another member for a while, if one is available: the answers of the present
        one don't fit together. It keeps its say in comparisons."""
        with self._lock:
            candidates = [
                member
                for member in self._members.values()
                if member is not self._kept and not member.health.is_paused
            ]
            if candidates:
                [self._kept] = random.choices(candidates, [_pull(member) for member in candidates])
                self._kept_until = monotonic() + KEPT

    def note_head(self, member: Member, members: Sequence[Member], height: int) -> None:
        """A member's head, just read. Raises ``TryAgain`` if it lags too far behind what others
        have said before, and another is available."""
        member.health.saw_head(height)
        best = reference_head(members)
        if best is None or best - height <= service_settings.RPC_MAX_LAG:
            return
        if _has_others(member, members):
            text = f"lags {best - height} blocks behind"
            member.health.leave_out(text, "lag", _LAG_PAUSE)
            raise TryAgain(text)

    def note_waiting(self, member: Member, members: Sequence[Member], seconds: float) -> None:
        """How long a step has waited for a member's answers. One that makes steps last long is left
        out for a while, if there are others: each of its answers may be just in time."""
        if seconds > LONGEST_STEP and _has_others(member, members):
            text = f"slow: {seconds:.0f} s for the requests of one step"
            member.health.leave_out(text, "slow", _SLOW_PAUSE)
            log.warning(
                "a provider is left out", network=self.network_id, provider=member.name, said=text
            )

    def needs(self, member: Member, members: Sequence[Member]) -> float:
        """The seconds that a member takes for some requests if no other can be used, else 0: so
        that a network with a slow provider alone is read nevertheless."""
        if _has_others(member, members):
            return 0.0
        return _REQUESTS * (member.health.latency or 0.0) / 1000

    def note_empty_promise(self, member: Member, members: Sequence[Member], text: str) -> None:
        """A member doesn't have blocks that it has named: its head counts no more, and if there
        are others, they are asked for a while."""
        member.health.forget_head()
        if len(members) > 1:
            member.health.leave_out(text, "lag", _LAG_PAUSE)


def reference_head(members: Sequence[Member]) -> int | None:
    """The highest head of the last minute; of three or more the second highest, so that one alone
    can't say that all others lag."""
    heads = sorted(head for member in members if (head := member.health.fresh_head) is not None)
    if not heads:
        return None
    return heads[-2] if len(heads) > 2 else heads[-1]


def _has_others(member: Member, members: Sequence[Member]) -> bool:
    return any(
        other is not member and not other.health.is_paused and not other.health.is_avoided
        for other in members
    )


def _pull(member: Member) -> float:
    """How strongly a member draws requests: by its weight, and by half if it takes long."""
    return max(member.given.weight, 0.01) / (50.0 + (member.health.latency or 50.0))


_pools: dict[int, Pool] = {}
_lock = threading.Lock()


def pool_of(network_id: int) -> Pool:
    with _lock:
        pool = _pools.get(network_id)
        if pool is None:
            pool = _pools[network_id] = Pool(network_id)
        return pool


def known_members(network_id: int) -> list[Member]:
    """The providers of a network that this process has asked, or may have."""
    pool = _pools.get(network_id)
    return pool.known() if pool else []


def forget() -> None:
    """Drop all pools: a forked process must not share connections."""
    global _lock
    _lock = threading.Lock()
    _pools.clear()


os.register_at_fork(after_in_child=forget)

__all__ = ["Member", "Pool", "known_members", "pool_of", "reference_head"]
