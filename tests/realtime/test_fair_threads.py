"""What clients ask is done fairly between addresses, within bounds, and not for who is gone."""

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
class Office:
    """Requesters and what was begun for them; nothing ends before the gate is open."""

    threads: FairThreads
    gate: threading.Event = field(default_factory=threading.Event)
    begun: list[str] = field(default_factory=list)

    def ask(self, *addresses: str) -> list[asyncio.Task[str]]:
        return [self.ask_for(Requester(address)) for address in addresses]

    def ask_for(self, requester: Requester) -> asyncio.Task[str]:
        return asyncio.create_task(self.threads.run_for(requester, self._work(requester.address)))

    def _work(self, address: str) -> Callable[[], str]:
        def work() -> str:
            self.begun.append(address)
            assert self.gate.wait(PATIENCE)
            return address

        return work


def scenario(test: Callable[[Office], Awaitable[None]], count: int = 4, **bounds: int) -> None:
    async def whole() -> None:
        office = Office(FairThreads("test-fair", count, **bounds))
        try:
            async with asyncio.timeout(PATIENCE):
                await test(office)
        finally:
            office.gate.set()
            await office.threads.close()

    asyncio.run(whole())


def test_an_address_has_half_of_the_threads_at_most_and_others_never_wait_for_it():
    async def test(office: Office) -> None:
        flood = office.ask(*["flood"] * 50)
        await eventually(lambda: len(office.begun) == 2)
        other = office.ask("other")
        await eventually(lambda: office.begun == ["flood", "flood", "other"])
        # The last thread is for an address that has none.
        more = office.ask("other", "third")
        await eventually(lambda: office.begun == ["flood", "flood", "other", "third"])
        office.gate.set()
        assert await asyncio.gather(*flood, *other, *more) == [
            *["flood"] * 50,
            "other",
            "other",
            "third",
        ]

    scenario(test)


def test_addresses_have_their_turns():
    async def test(office: Office) -> None:
        first = office.ask("flood")
        await eventually(lambda: office.begun)
        other_answers = office.ask(*["flood"] * 50, "other", "third", "third")
        await eventually(lambda: office.threads.waiting == 53)
        office.gate.set()
        await asyncio.gather(*first, *other_answers)
        assert office.begun.index("other") <= 2
        assert [place for place, item in enumerate(office.begun) if item == "third"][-1] <= 6

    scenario(test, count=1)


def test_addresses_of_one_network_are_one():
    async def test(office: Office) -> None:
        office.ask("2001:db8::1", "2001:db8::2", "2001:db8::3")
        await eventually(lambda: len(office.begun) == 2)
        office.ask("2001:db8:0:1::1")
        await eventually(lambda: office.begun[2:] == ["2001:db8:0:1::1"])

    scenario(test)


def test_what_waits_for_who_is_gone_is_never_begun():
    async def test(office: Office) -> None:
        office.ask("one", "one")
        await eventually(lambda: len(office.begun) == 2)
        gone, here = Requester("one"), Requester("one")
        dropped = [office.ask_for(gone) for _ in range(20)]
        task = office.ask_for(here)
        await eventually(lambda: office.threads.waiting == 21)
        gone.is_open = False
        office.threads.drop(gone)
        dropped.append(office.ask_for(gone))
        await asyncio.wait(dropped)
        assert all(item.cancelled() for item in dropped)
        office.gate.set()
        assert await task == "one"
        assert len(office.begun) == 3

    scenario(test)


def test_who_stops_waiting_takes_no_thread():
    async def test(office: Office) -> None:
        office.ask("one")
        await eventually(lambda: office.begun)
        waiting = office.ask("one", "one")
        await eventually(lambda: office.threads.waiting == 2)
        waiting[0].cancel()
        office.gate.set()
        assert await waiting[1] == "one"
        assert len(office.begun) == 2

    scenario(test, count=1)


def test_what_fails_fails_for_its_requester_and_frees_the_thread():
    async def test(office: Office) -> None:
        def fail() -> None:
            raise MemoryError

        for _ in range(10):
            with pytest.raises(MemoryError):
                await office.threads.run_for(Requester("one"), fail)
        office.gate.set()
        assert await office.ask("one")[0] == "one"

    scenario(test)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_code_that_ends_its_process_elsewhere_fails_for_its_requester(error: type[BaseException]):
    """As ``sys.exit()`` in a trigger: the event loop would end with it."""

    def work() -> None:
        raise error

    async def test(office: Office) -> None:
        with pytest.raises(RuntimeError, match=error.__name__):
            await office.threads.run_for(Requester("one"), work)

    scenario(test, count=1)


def test_too_much_that_waits_is_refused():
    async def test(office: Office) -> None:
        office.ask("one")
        await eventually(lambda: office.begun)
        office.ask("one", "one", "one")
        await eventually(lambda: office.threads.waiting == 3)
        with pytest.raises(TooManyAtOnce):
            await office.ask("one")[0]
        office.ask("two", "two")
        await eventually(lambda: office.threads.waiting == 5)
        with pytest.raises(Overloaded):
            await office.ask("three")[0]

    scenario(test, count=1, most=5, most_of_address=3)


# -- bytes ----------------------------------------------------------------------------------------


def test_an_address_holds_its_share_and_leaves_the_rest_to_others():
    shares = Shares("Texts", 100, 40)
    shares.take("192.0.2.1", 40)
    with pytest.raises(RateLimited, match="Texts of this address"):
        shares.take("192.0.2.1", 1)
    shares.take("192.0.2.1", 30, instead_of=40)
    shares.give_back("192.0.2.1", 40)
    shares.take("192.0.2.1", 10)
    shares.take("192.0.2.2", 40)
    with pytest.raises(ServiceUnavailable, match="Texts of all clients"):
        shares.take("192.0.2.3", 21)
    shares.take("192.0.2.3", 20)
    assert shares.total == 100
    for address, size in (("192.0.2.1", 40), ("192.0.2.2", 40), ("192.0.2.3", 20)):
        shares.give_back(address, size)
    assert shares.total == 0


def test_without_an_address_only_the_whole_counts():
    shares = Shares("Texts", 100, 40)
    shares.take("", 100)
    with pytest.raises(ServiceUnavailable, match="Texts of all clients"):
        shares.take("", 1)
