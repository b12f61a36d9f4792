"""Requests run fairly between addresses, within limits, and not for disconnected clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from backend.kernel.errors import RateLimited, ServiceUnavailable
from backend.server.refusals import Overloaded, TooManyAtOnce
from realtime.process.shares import Shares
from realtime.sockets.threads import FairThreads
from tests.realtime.in_process import PATIENCE, eventually

pytestmark = pytest.mark.django_db


@dataclass(eq=False)
class Requester:
    address: str
    is_open: bool = True


@dataclass
class ThreadsHarness:
    """Requesters and what was started for them; nothing ends before the gate is open."""

    threads: FairThreads
    gate: threading.Event = field(default_factory=threading.Event)
    started: list[str] = field(default_factory=list)

    def submit(self, *addresses: str) -> list[asyncio.Task[str]]:
        return [self.submit_for(Requester(address)) for address in addresses]

    def submit_for(self, requester: Requester) -> asyncio.Task[str]:
        return asyncio.create_task(self.threads.run_for(requester, self._work(requester.address)))

    def _work(self, address: str) -> Callable[[], str]:
        def work() -> str:
            self.started.append(address)
            assert self.gate.wait(PATIENCE)
            return address

        return work


def scenario(
    test: Callable[[ThreadsHarness], Awaitable[None]], count: int = 4, **bounds: int
) -> None:
    async def whole() -> None:
        harness = ThreadsHarness(FairThreads("test-fair", count, **bounds))
        try:
            async with asyncio.timeout(PATIENCE):
                await test(harness)
        finally:
            harness.gate.set()
            await harness.threads.close()

    asyncio.run(whole())


def test_an_address_has_at_most_half_of_the_threads():
    async def test(harness: ThreadsHarness) -> None:
        flood = harness.submit(*["flood"] * 50)
        await eventually(lambda: len(harness.started) == 2)
        other = harness.submit("other")
        await eventually(lambda: harness.started == ["flood", "flood", "other"])
        # The last thread is for an address that has none.
        more = harness.submit("other", "third")
        await eventually(lambda: harness.started == ["flood", "flood", "other", "third"])
        harness.gate.set()
        assert await asyncio.gather(*flood, *other, *more) == [
            *["flood"] * 50,
            "other",
            "other",
            "third",
        ]

    scenario(test)


def test_addresses_take_turns():
    async def test(harness: ThreadsHarness) -> None:
        first = harness.submit("flood")
        await eventually(lambda: harness.started)
        other_answers = harness.submit(*["flood"] * 50, "other", "third", "third")
        await eventually(lambda: harness.threads.waiting == 53)
        harness.gate.set()
        await asyncio.gather(*first, *other_answers)
        assert harness.started.index("other") <= 2
        assert [place for place, item in enumerate(harness.started) if item == "third"][-1] <= 6

    scenario(test, count=1)


def test_addresses_of_one_network_share_a_turn():
    async def test(harness: ThreadsHarness) -> None:
        harness.submit("2001:db8::1", "2001:db8::2", "2001:db8::3")
        await eventually(lambda: len(harness.started) == 2)
        harness.submit("2001:db8:0:1::1")
        await eventually(lambda: harness.started[2:] == ["2001:db8:0:1::1"])

    scenario(test)


def test_requests_of_a_disconnected_requester_never_start():
    async def test(harness: ThreadsHarness) -> None:
        harness.submit("one", "one")
        await eventually(lambda: len(harness.started) == 2)
        gone, here = Requester("one"), Requester("one")
        dropped = [harness.submit_for(gone) for _ in range(20)]
        task = harness.submit_for(here)
        await eventually(lambda: harness.threads.waiting == 21)
        gone.is_open = False
        harness.threads.drop_requests(gone)
        dropped.append(harness.submit_for(gone))
        await asyncio.wait(dropped)
        assert all(item.cancelled() for item in dropped)
        harness.gate.set()
        assert await task == "one"
        assert len(harness.started) == 3

    scenario(test)


def test_a_cancelled_request_takes_no_thread():
    async def test(harness: ThreadsHarness) -> None:
        harness.submit("one")
        await eventually(lambda: harness.started)
        waiting = harness.submit("one", "one")
        await eventually(lambda: harness.threads.waiting == 2)
        waiting[0].cancel()
        harness.gate.set()
        assert await waiting[1] == "one"
        assert len(harness.started) == 2

    scenario(test, count=1)


def test_an_error_reaches_its_requester_and_frees_the_thread():
    async def test(harness: ThreadsHarness) -> None:
        def fail() -> None:
            raise MemoryError

        for _ in range(10):
            with pytest.raises(MemoryError):
                await harness.threads.run_for(Requester("one"), fail)
        harness.gate.set()
        assert await harness.submit("one")[0] == "one"

    scenario(test)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_system_exit_is_an_error_for_its_requester(error: type[BaseException]):
    """As ``sys.exit()`` in a trigger: the event loop would end with it."""

    def work() -> None:
        raise error

    async def test(harness: ThreadsHarness) -> None:
        with pytest.raises(RuntimeError, match=error.__name__):
            await harness.threads.run_for(Requester("one"), work)

    scenario(test, count=1)


def test_too_many_waiting_requests_are_rejected():
    async def test(harness: ThreadsHarness) -> None:
        harness.submit("one")
        await eventually(lambda: harness.started)
        harness.submit("one", "one", "one")
        await eventually(lambda: harness.threads.waiting == 3)
        with pytest.raises(TooManyAtOnce):
            await harness.submit("one")[0]
        harness.submit("two", "two")
        await eventually(lambda: harness.threads.waiting == 5)
        with pytest.raises(Overloaded):
            await harness.submit("three")[0]

    scenario(test, count=1, most=5, most_of_address=3)


# -- bytes ----------------------------------------------------------------------------------------


def test_the_share_of_an_address_is_limited():
    shares = Shares("Texts", 100, 40)
    shares.reserve("192.0.2.1", 40)
    with pytest.raises(RateLimited, match="Texts of this address"):
        shares.reserve("192.0.2.1", 1)
    shares.reserve("192.0.2.1", 30, replacing=40)
    shares.release("192.0.2.1", 40)
    shares.reserve("192.0.2.1", 10)
    shares.reserve("192.0.2.2", 40)
    with pytest.raises(ServiceUnavailable, match="Texts of all clients"):
        shares.reserve("192.0.2.3", 21)
    shares.reserve("192.0.2.3", 20)
    assert shares.total == 100
    for address, size in (("192.0.2.1", 40), ("192.0.2.2", 40), ("192.0.2.3", 20)):
        shares.release(address, size)
    assert shares.total == 0


def test_without_an_address_only_the_total_is_limited():
    shares = Shares("Texts", 100, 40)
    shares.reserve("", 100)
    with pytest.raises(ServiceUnavailable, match="Texts of all clients"):
        shares.reserve("", 1)
