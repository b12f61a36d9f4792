"""What a process counts: its connections by client address, their deadlines, their memory."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

from backend.server.limits import Limits

TICK: Final = 0.05
_SWEEP: Final = 1.0
_RESERVE: Final = 64
"""File descriptors that are left to the database, Redis, files and logs."""


class Peer(Protocol):
    """A connection, as it is counted."""

    network: str
    """The client's address as it is counted; empty for a proxy of ours, which isn't limited."""

    @property
    def idle_since(self) -> float | None:
        """Since when it has been waiting for a request; None if it isn't."""

    @property
    def unsent(self) -> int:
        """Bytes of responses that the client hasn't taken yet."""

    def check(self, now: float) -> None:
        """Enforce the deadlines."""

    def drop(self) -> None:
        """Close without a word."""

    def shut_down(self) -> None:
        """End when the responses that are due have been sent."""


class Connections:
    """The open connections of one process. Everything is called in the event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.refused = 0
        self._open: set[Peer] = set()
        self._full: set[Peer] = set()
        self._by_network: Counter[str] = Counter()
        self._swept_at = 0.0
        # A connection may have a temporary file for its request's body.
        self._most = min(limits.max_connections, max(1, (_file_limit() - _RESERVE) // 2))

    def __len__(self) -> int:
        return len(self._open)

    def add(self, peer: Peer) -> bool:
        """Count a new connection; false if its address has too many."""
        network = peer.network
        if not self.may_add(network):
            return False
        if len(self._open) >= self._most:
            self._make_room()
        self._open.add(peer)
        if network:
            self._by_network[network] += 1
        return True

    def may_add(self, network: str) -> bool:
        """Whether a client's network may have one more connection."""
        if network and self._by_network[network] >= self.limits.max_per_address:
            self.refused += 1
            return False
        return True

    def remove(self, peer: Peer) -> None:
        """A connection is closed. Without effect for one that isn't counted."""
        if peer not in self._open:
            return
        self._open.remove(peer)
        self._full.discard(peer)
        if peer.network:
            self._by_network[peer.network] -= 1
            if self._by_network[peer.network] <= 0:
                del self._by_network[peer.network]

    def _make_room(self) -> None:
        """Close the connection that has been idle for longest, of the busiest network first."""
        self.refused += 1
        networks = [network for network, _ in self._by_network.most_common(1)]
        for network in (*networks, None):
            idle = [
                (peer.idle_since, id(peer), peer)
                for peer in self._open
                if peer.idle_since is not None and network in (None, peer.network)
            ]
            if idle:
                # A tenth at a time: looking at all of them for each new one would be a cost that
                # a flood of connections could choose.
                for _, _, peer in sorted(idle)[: max(1, len(idle) // 10)]:
                    self._drop(peer)
                return
        # All of them are busy: the busiest network loses one.
        for peer in self._open:
            if not networks or peer.network == networks[0]:
                self._drop(peer)
                return

    def _drop(self, peer: Peer) -> None:
        """Close, and count at once: the event loop tells of closed connections only later."""
        self.remove(peer)
        peer.drop()

    def sweep(self, now: float) -> None:
        """Enforce the limit of memory, and deadlines once a second."""
        if self._full:
            self._free_memory()
        if now - self._swept_at < _SWEEP:
            return
        self._swept_at = now
        for peer in tuple(self._open):
            peer.check(now)

    def set_full(self, peer: Peer, is_full: bool) -> None:
        """A connection has more unsent bytes than its transport likes, or no longer."""
        if is_full and peer in self._open:
            self._full.add(peer)
        else:
            self._full.discard(peer)

    def _free_memory(self) -> None:
        """Close connections with unsent responses until the others are within the limit: the
        largest of the network that has most."""
        sizes = {peer: peer.unsent for peer in self._full}
        excess = sum(sizes.values()) - self.limits.unsent
        if excess <= 0:
            return
        by_network: Counter[str] = Counter()
        for peer, size in sizes.items():
            by_network[peer.network] += size
        queues: dict[str, list[Peer]] = {}
        for peer in sorted(sizes, key=sizes.__getitem__):
            queues.setdefault(peer.network, []).append(peer)
        while excess > 0:
            network = max(by_network, key=by_network.__getitem__)
            peer = queues[network].pop()
            excess -= sizes[peer]
            by_network[network] -= sizes[peer]
            self._drop(peer)

    def everyone(self) -> tuple[Peer, ...]:
        """The connections that are open now."""
        return tuple(self._open)


def _file_limit() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20
