"""Requests to threads: fair between addresses, bounded, none lost and none run twice."""

from __future__ import annotations

import queue
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, cast

import pytest

from backend.kernel.errors import ServiceError
from backend.kernel.process import liveness
from backend.kernel.process.liveness import Signs
from backend.server.dispatcher import Dispatcher
from backend.server.limits import Limits
from backend.server.responses.heads import Response

PATIENCE = 20.0


class Loop:
    """The event loop's part: callbacks from threads, run by the test."""

    def __init__(self) -> None:
        self._callbacks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        self._callbacks.put(callback)

    def run_until(self, condition: Callable[[], object], also: Callable[[], None]) -> None:
        end = monotonic() + PATIENCE
        while not condition():
            assert monotonic() < end
            also()
            try:
                self._callbacks.get(timeout=0.01)()
            except queue.Empty:
                continue


@dataclass(eq=False)
class Job:
    address: str
    gate: threading.Event | None = None
    is_abandoned: bool = False
    runs: int = 0
    responses: list[int] = field(default_factory=list)
    errors: list[ServiceError] = field(default_factory=list)
    log: list[str] | None = None
    error: BaseException | None = None

    def run(self) -> Response:
        self.runs += 1
        if self.error is not None:
            raise self.error
        if self.log is not None:
            self.log.append(self.address)
        if self.gate is not None:
            assert self.gate.wait(PATIENCE)
        return Response(200)

    def finish(self, response: Response) -> None:
        self.responses.append(response.status)

    def fail(self, error: ServiceError) -> None:
        self.errors.append(error)

    @property
    def is_over(self) -> bool:
        return bool(self.responses or self.errors)


class Bench:
    """A dispatcher with the test in the place of its event loop."""

    def __init__(
        self,
        threads: int = 2,
        is_working: Callable[[int, float], bool] = lambda thread, seconds: False,
        **limits: Any,
    ) -> None:
        self.loop = Loop()
        self.ended = 0
        self.gate = threading.Event()
        self.jobs: list[Job] = []
        self.dispatcher = Dispatcher(
            cast(Any, self.loop),
            Limits(**limits),
            threads,
            self._end_thread,
            is_working=is_working,
        )

    def _end_thread(self) -> None:
        self.ended += 1

    def submit(self, address: str, count: int = 1, **options: Any) -> list[Job]:
        jobs = [Job(address, **options) for _ in range(count)]
        for job in jobs:
            self.dispatcher.submit(job)
        self.jobs += jobs
        return jobs

    def wait(self, condition: Callable[[], object]) -> None:
        self.loop.run_until(condition, self.dispatcher.tick)

    def close(self) -> None:
        self.gate.set()
        self.wait(lambda: all(job.is_over for job in self.jobs))
        self.dispatcher.end()
        self.wait(lambda: self.dispatcher.load[2] == 0)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def test_addresses_take_turns() -> None:
    bench = Bench(threads=1)  # makes the order visible
    (first,) = bench.submit("flood", gate=bench.gate)
    bench.wait(lambda: first.runs)
    log: list[str] = []
    for address, count in (("flood", 50), ("other", 1), ("third", 2)):
        bench.submit(address, count, log=log)
    bench.close()
    assert log.index("other") <= 2
    assert [index for index, address in enumerate(log) if address == "third"][-1] <= 6
    assert Counter(log) == {"flood": 50, "other": 1, "third": 2}


def test_an_address_with_slow_requests_cannot_take_every_thread(bench: Bench) -> None:
    slow = bench.submit("slow", 50, gate=bench.gate)
    bench.wait(lambda: sum(job.runs for job in slow) == 2)
    other_calls = bench.submit("other", 20)
    bench.wait(lambda: all(job.is_over for job in other_calls))
    assert sum(job.runs for job in slow) == 2


def test_each_of_several_slow_addresses_has_the_basic_number_at_most(bench: Bench) -> None:
    first = bench.submit("first", 20, gate=bench.gate)
    bench.wait(lambda: sum(job.runs for job in first) == 2)
    second = bench.submit("second", 20, gate=bench.gate)
    bench.wait(lambda: sum(job.runs for job in second) == 2)
    other_calls = bench.submit("other", 5)
    bench.wait(lambda: all(job.is_over for job in other_calls))
    assert sum(job.runs for job in first) == sum(job.runs for job in second) == 2


def test_there_are_no_more_threads_than_four_times_the_basic_number(bench: Bench) -> None:
    jobs = [bench.submit(f"address-{number}", gate=bench.gate)[0] for number in range(30)]
    bench.wait(lambda: sum(job.runs for job in jobs) == 8)
    for _ in range(20):
        bench.dispatcher.tick()
    assert bench.dispatcher.load == (22, 8, 8)


def test_additional_threads_end_when_they_are_not_needed() -> None:
    bench = Bench(idle_thread=0.02)
    jobs = [bench.submit(f"address-{number}", gate=bench.gate)[0] for number in range(8)]
    bench.wait(lambda: all(job.runs for job in jobs))
    assert bench.dispatcher.load[2] == 8
    bench.gate.set()
    bench.wait(lambda: bench.dispatcher.load == (0, 0, 2))
    bench.wait(lambda: bench.ended == 6)
    (job,) = bench.submit("later")
    bench.wait(lambda: job.is_over)
    bench.close()


def test_too_many_waiting_requests_of_one_address_are_429_and_of_all_503() -> None:
    bench = Bench(waiting=5, waiting_per_address=3)
    blockers = bench.submit("busy", 2, gate=bench.gate)
    bench.wait(lambda: all(job.runs for job in blockers))
    jobs = bench.submit("busy", 4, gate=bench.gate)
    assert [error.status for error in jobs[3].errors] == [429]
    assert getattr(jobs[3].errors[0], "headers", {})["Retry-After"] == "1"
    other_calls = [bench.submit(f"other-{number}", gate=bench.gate)[0] for number in range(8)]
    bench.wait(lambda: any(job.errors for job in other_calls))
    assert {error.status for job in other_calls for error in job.errors} == {503}
    bench.close()
    assert all(len(job.errors) + len(job.responses) == 1 for job in bench.jobs)


def test_requests_that_wait_too_long_are_refused() -> None:
    bench = Bench(wait_time=0.05)
    blockers = bench.submit("busy", 2, gate=bench.gate)
    bench.wait(lambda: all(job.runs for job in blockers))
    late = bench.submit("busy", 3)
    bench.wait(lambda: all(job.is_over for job in late))
    assert [job.errors[0].status for job in late] == [503] * 3
    bench.close()
    assert [job.runs for job in late] == [0] * 3


def test_abandoned_requests_are_not_run_and_make_room(bench: Bench) -> None:
    blockers = bench.submit("busy", 2, gate=bench.gate)
    bench.wait(lambda: all(job.runs for job in blockers))
    gone = bench.submit("busy", 5)
    assert bench.dispatcher.load[0] == 5
    for job in gone:
        job.is_abandoned = True
    bench.dispatcher.tick()
    assert bench.dispatcher.load[0] == 0
    assert [len(job.errors) for job in gone] == [1] * 5
    assert not any(job.runs for job in gone)


@pytest.mark.parametrize("seed", range(5))
def test_no_request_is_lost_or_run_twice_in_a_random_schedule(seed: int) -> None:
    chance = random.Random(seed)
    bench = Bench(threads=chance.randint(1, 3), idle_thread=0.001, waiting=200)
    gates: list[threading.Event] = []
    for _ in range(300):
        event = chance.random()
        if event < 0.1:
            gates.append(threading.Event())
            bench.submit(f"address-{chance.randrange(4)}", gate=gates[-1])
        elif event < 0.7:
            bench.submit(f"address-{chance.randrange(8)}", chance.randint(1, 5))
        elif event < 0.8 and gates:
            gates.pop(chance.randrange(len(gates))).set()
        elif event < 0.9:
            for job in chance.sample(bench.jobs, min(3, len(bench.jobs))):
                job.is_abandoned = True
        else:
            bench.dispatcher.tick()
    for gate in gates:
        gate.set()
    bench.close()
    for job in bench.jobs:
        assert len(job.responses) + len(job.errors) == 1
        assert job.runs <= 1
        assert job.runs == 1 or job.errors or job.is_abandoned


def test_a_job_that_cannot_be_refused_or_finished_holds_up_no_other() -> None:
    bench = Bench(threads=1, wait_time=0.05)
    (running,) = bench.submit("a", gate=bench.gate)
    bench.wait(lambda: running.runs)
    broken, other = bench.submit("b"), bench.submit("c")

    def fail(error: object) -> None:
        broken[0].errors.append(cast(Any, error))
        raise RuntimeError("as a connection may")

    broken[0].fail = fail  # type: ignore[method-assign]
    bench.wait(lambda: broken[0].errors and other[0].errors)
    bench.close()
    assert running.responses == [200]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError(), ValueError()])
def test_a_thread_that_ends_is_replaced_and_its_request_refused(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs = Signs(2)
    monkeypatch.setattr(liveness, "_own", (signs, 1))
    bench = Bench()
    doomed = [job for _ in range(5) for job in bench.submit("doomed", error=error)]
    bench.wait(lambda: all(job.is_over for job in doomed))
    assert [job.errors[0].status for job in doomed] == [500] * 5
    assert signs.ended_threads() == 5
    others = bench.submit("doomed", 20) + bench.submit("other", 20)
    bench.wait(lambda: all(job.responses for job in others))
    assert bench.dispatcher.load == (0, 0, 2)
    bench.close()
    assert bench.ended == 7


def test_requests_that_no_thread_takes_stall_a_dispatcher() -> None:
    bench = Bench(threads=1, stall_time=0)
    (stuck,) = bench.submit("a", gate=bench.gate)
    bench.wait(lambda: stuck.runs)
    assert not bench.dispatcher.is_stalled()  # nothing waits
    bench.submit("a")
    assert bench.dispatcher.is_stalled()
    bench.close()
    assert not bench.dispatcher.is_stalled()


def test_a_thread_that_works_or_took_a_request_lately_stalls_nothing() -> None:
    working = Bench(threads=1, stall_time=0, is_working=lambda thread, seconds: seconds < PATIENCE)
    lately = Bench(threads=1, stall_time=2 * PATIENCE)
    for bench in (working, lately):
        (slow,) = bench.submit("a", gate=bench.gate)
        bench.wait(lambda slow=slow: slow.runs)
        bench.submit("a")
        assert not bench.dispatcher.is_stalled()
        bench.close()
