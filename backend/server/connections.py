"""The open connections of one process: their number by address, deadlines, unsent bytes."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

from backend.server.limits import Limits

_CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks of all deadlines."""
_SMALL: Final = 1024 * 1024
"""Smaller responses are always sent at once. The limit on unsent bytes is enforced afterwards."""
_RESERVED_FILES: Final = 64
"""File descriptors that are reserved for the database, Redis, files and logs."""


class Peer(Protocol):
    """A connection, as ``Connections`` sees it."""

    network: str
    """The client's network (``client_network``); empty for a trusted proxy, which isn't limited."""

    @property
    def idle_since(self) -> float | None:
        """The time since which the connection waits for a request; None while it serves one."""

    @property
    def unsent(self) -> int:
        """Bytes of responses in the transport's buffer."""

    def check(self, now: float) -> None:
        """Enforce the deadlines."""

    def drop(self) -> None:
        """Close at once, without a response."""

    def shut_down(self) -> None:
        """Close now if idle, otherwise after the pending responses."""


class Connections:
    """The open connections of one process. Everything is called in the event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.refused = 0
        self._open: set[Peer] = set()
        self._full: set[Peer] = set()
        self._by_network: Counter[str] = Counter()
        self._checked_at = 0.0
        # Two descriptors each: the socket, and perhaps a temporary file for a body.
        room = (_descriptor_limit() - _RESERVED_FILES) // 2
        self._most = min(limits.max_connections, max(1, room))

    def __len__(self) -> int:
        return len(self._open)

    def add(self, peer: Peer) -> bool:
        """Count a new connection; False if its network has too many."""
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
        """Whether a network may open one more connection; counts a refusal if not."""
        if network and self._by_network[network] >= self.limits.max_per_address:
            self.refused += 1
            return False
        return True

    def remove(self, peer: Peer) -> None:
        """Stop counting a connection; no effect if it isn't counted."""
        if peer not in self._open:
            return
        self._open.remove(peer)
        self._full.discard(peer)
        if peer.network:
            self._by_network[peer.network] -= 1
            if self._by_network[peer.network] <= 0:
                del self._by_network[peer.network]

    def _make_room(self) -> None:
        """Close the longest idle tenth of the busiest network's connections, or else of all.

        Without an idle connection, close one of the busiest network.
        """
        self.refused += 1
        networks = [network for network, _ in self._by_network.most_common(1)]
        for network in (*networks, None):
            idle = [
                (peer.idle_since, id(peer), peer)
                for peer in self._open
                if peer.idle_since is not None and network in (None, peer.network)
            ]
            if idle:
                # A tenth at a time, because a scan of all connections for each new one would make
                # a flood more expensive.
                for _, _, peer in sorted(idle)[: max(1, len(idle) // 10)]:
                    self._drop(peer)
                return
        for peer in self._open:
            if not networks or peer.network == networks[0]:
                self._drop(peer)
                return

    def _drop(self, peer: Peer) -> None:
        """Close a connection and stop counting it now: ``connection_lost`` comes later."""
        self.remove(peer)
        peer.drop()

    def sweep(self, now: float) -> None:
        """Enforce the limit on unsent bytes, and once a second the deadlines."""
        if self._full:
            self._free_memory()
        if now - self._checked_at < _CHECK_INTERVAL:
            return
        self._checked_at = now
        for peer in tuple(self._open):
            peer.check(now)

    def set_full(self, peer: Peer, is_full: bool) -> None:
        """Record whether a connection has more unsent bytes than its high-water mark."""
        if is_full and peer in self._open:
            self._full.add(peer)
        else:
            self._full.discard(peer)

    def may_send(self, peer: Peer, size: int) -> bool:
        """Whether there is memory for a response of this size, should the client not read it.

        Connections of networks that take more are closed for it.
        """
        return size < _SMALL or self._free_memory(peer.network, size)

    def _free_memory(self, network: str = "", size: int = 0) -> bool:
        """Close connections until the unsent bytes, with ``size`` more of a network, fit the limit.

        Each time the largest connection of the network with the most unsent bytes. Returns False
        when that is ``network`` itself.
        """
        sizes = {peer: peer.unsent for peer in self._full}
        excess = sum(sizes.values()) + size - self.limits.unsent
        if excess <= 0:
            return True
        by_network: Counter[str] = Counter({network: size} if size else {})
        for peer, unsent in sizes.items():
            by_network[peer.network] += unsent
        queues: dict[str, list[Peer]] = {}
        for peer in sorted(sizes, key=sizes.__getitem__):
            queues.setdefault(peer.network, []).append(peer)
        while excess > 0:
            heaviest = max(by_network, key=by_network.__getitem__)
            if size and heaviest == network:
                return False
            peer = queues[heaviest].pop()
            excess -= sizes[peer]
            by_network[heaviest] -= sizes[peer]
            self._drop(peer)
        return True

    def snapshot(self) -> tuple[Peer, ...]:
        """Return the connections that are open now."""
        return tuple(self._open)


def _descriptor_limit() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20
