"""The threads in which sockets query the database and run a deployment's code, so that the event
loop never waits for either."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from django.db import close_old_connections, connections

from backend.kernel.limits.fair_queue import Turns
from backend.kernel.networks import client_network
from backend.server.refusals import Overloaded, TooManyAtOnce

_MOST_WAITING: Final = 10_000
_MOST_WAITING_OF_ADDRESS: Final = 1_000
_PATIENCE: Final = 5.0  # seconds

T = TypeVar("T")


class Threads:
    """A few threads, each with its connection to the database, so that many clients who connect
    at once wait for each other instead of using all connections. A single thread runs its work in
    order. The threads start with the first work, also after ``close``."""

    def __init__(self, name: str, count: int = 4) -> None:
        self._name = name
        self.count = count
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` in one of the threads. Raises what it raises."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count, self._name)
        return await asyncio.get_running_loop().run_in_executor(self._pool, _run_work, work)

    async def close(self) -> None:
        """End the threads and their connections after their current work; doesn't wait long."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        barrier = threading.Barrier(self.count)

        def closed() -> None:
            connections.close_all()
            # The barrier keeps a thread from running this twice.
            with suppress(threading.BrokenBarrierError):
                barrier.wait(_PATIENCE)

        ended = [asyncio.wrap_future(pool.submit(closed)) for _ in range(self.count)]
        pool.shutdown(wait=False)
        await asyncio.wait(ended, timeout=_PATIENCE)


class Requester(Protocol):
    """A connection of a client."""

    address: str
    is_open: bool


@dataclass(eq=False, slots=True)
class _Job:
    requester: Requester
    work: Callable[[], Any]
    result: asyncio.Future[Any]


class FairThreads(Threads):
    """Threads for requests of clients. Belongs to the event loop.

    Addresses take turns, so a thousand requests of one delay another's by one. An address gets
    another thread only while more of them are free than it holds: it never has more than half, and
    the last one is for an address that has none. A request is rejected while ``most`` wait, or
    ``most_of_address`` of the same address.
    """

    def __init__(
        self,
        name: str,
        count: int = 4,
        *,
        most: int = _MOST_WAITING,
        most_of_address: int = _MOST_WAITING_OF_ADDRESS,
    ) -> None:
        super().__init__(name, count)
        self._most = most
        self._most_of_address = most_of_address
        self._turns: Turns[_Job] = Turns()
        self._held: Counter[str] = Counter()
        self._free = count

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a thread."""
        return len(self._turns)

    async def run_for(self, requester: Requester, work: Callable[[], T]) -> T:
        """Run ``work`` in one of the threads, in the turn of the requester's address.

        Raises what it raises, ``TooManyAtOnce`` and ``Overloaded`` if too many requests wait, and
        ``CancelledError`` if the requester disconnects before its turn.
        """
        if not requester.is_open:
            raise asyncio.CancelledError
        network = client_network(requester.address)
        if len(self._turns) >= self._most:
            raise Overloaded
        if self._turns.waiting_of(network) >= self._most_of_address:
            raise TooManyAtOnce
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._turns.put(network, _Job(requester, work, result))
        self._start_next()
        return await result

    def drop_requests(self, requester: Requester) -> None:
        """Drop the waiting requests of this requester. Those that have started continue."""
        network = client_network(requester.address)
        for job in self._turns.remove(lambda queued: queued.requester is requester, network):
            job.result.cancel()

    def _start_next(self) -> None:
        while self._free and (turn := self._turns.take(self._may_start)) is not None:
            network, job = turn
            if job.result.done():
                continue
            self._free -= 1
            self._held[network] += 1
            task = asyncio.get_running_loop().create_task(self.run(job.work))
            task.add_done_callback(partial(self._finish, network, job.result))

    def _may_start(self, network: str) -> bool:
        return self._held[network] < self._free

    def _finish(self, network: str, result: asyncio.Future[Any], task: asyncio.Task[Any]) -> None:
        self._free += 1
        self._held[network] -= 1
        if not self._held[network]:
            del self._held[network]
        error = None if task.cancelled() else task.exception()
        if not result.done():
            if task.cancelled():
                result.cancel()
            elif error is not None:
                result.set_exception(error)
            else:
                result.set_result(task.result())
        if not task.get_loop().is_closed():
            self._start_next()


def _run_work(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    except Exception:
        raise
    except BaseException as error:
        # An event loop would end with some of them, and every socket of the process.
        raise RuntimeError(f"{type(error).__name__} in a thread") from error
    finally:
        close_old_connections()
