"""Queues by client address, served in turn: who queues a thousand things delays others by one.

Plain Python. The HTTP server's dispatcher and live queries decide with it whose turn it is.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """What waits, by address. Not thread-safe; iteration is over the addresses, the next first."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[T]] = OrderedDict()
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def __iter__(self) -> Iterator[str]:
        return iter(self._queues)

    def waiting_of(self, address: str) -> int:
        """How many entries of an address wait."""
        waiting = self._queues.get(address)
        return 0 if waiting is None else len(waiting)

    def first(self, address: str) -> T:
        """Return the oldest entry of an address that has one."""
        return self._queues[address][0]

    def put(self, address: str, entry: T) -> None:
        """Queue an entry behind those of its address."""
        waiting = self._queues.get(address)
        if waiting is None:
            waiting = self._queues[address] = deque()
        waiting.append(entry)
        self._waiting += 1

    def take(self, may: Callable[[str], bool]) -> tuple[str, T] | None:
        """Take the oldest entry of the next address that ``may`` have one, which is the last one
        then; None if there is none. The order of addresses that may not is kept."""
        for address in self._queues:
            if may(address):
                break
        else:
            return None
        waiting = self._queues[address]
        entry = waiting.popleft()
        self._waiting -= 1
        if waiting:
            self._queues.move_to_end(address)
        else:
            del self._queues[address]
        return address, entry

    def remove(self, is_out: Callable[[T], bool], address: str | None = None) -> list[T]:
        """Remove the entries of which this is true, of one address or of all, and return them."""
        out: list[T] = []
        for key in list(self._queues) if address is None else [address]:
            waiting = self._queues.get(key)
            if waiting is None:
                continue
            left: deque[T] = deque()
            for entry in waiting:
                (out if is_out(entry) else left).append(entry)
            if not left:
                del self._queues[key]
            elif len(left) < len(waiting):
                self._queues[key] = left
        self._waiting -= len(out)
        return out
