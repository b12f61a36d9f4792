"""A process with many connections searches for garbage seldom, and finds it in the end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from realtime.process.garbage import collect_rarely

MANY = 2_500_000  # objects, more than what sets off a search


class Garbage:
    """A connection that is gone, and refers to itself."""

    def __init__(self, number_of_objects: int) -> None:
        self.myself = self
        self.rest: list[list[int]] = [[number] for number in range(number_of_objects)]


@pytest.fixture(autouse=True)
def restored_gc_settings() -> Iterator[None]:
    """The search for garbage is a matter of the whole process."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def searches() -> int:
    """How often everything has been searched."""
    collections: int = gc.get_stats()[2]["collections"]
    return collections


class Counted:
    """A process with 8,000 connections, which counts how often they are read."""

    ended = 0
    looks = 0

    @property
    def sockets(self) -> range:
        self.looks += 1
        return range(8_000)


async def _garbage_is_collected(ended: int, size: int) -> bool:
    """Whether a dead object is given back, after so many connections have ended."""
    process = Counted()
    searching = asyncio.create_task(collect_rarely(process, interval=0.001))
    await asyncio.sleep(0)  # let it start
    dead = weakref.ref(Garbage(size))
    process.ended, observed = ended, process.looks
    async with asyncio.timeout(30):
        while process.looks < observed + 20 and dead() is not None:
            await asyncio.sleep(0.001)
    searching.cancel()
    return dead() is None


@pytest.mark.slow
def test_garbage_of_many_closed_connections_is_collected() -> None:
    assert asyncio.run(_garbage_is_collected(ended=2_000, size=10))


def test_no_full_collection_runs_after_few_closed_connections() -> None:
    before = searches()
    assert not asyncio.run(_garbage_is_collected(ended=1_999, size=10))
    assert searches() == before + 1  # before it left out what is loaded


@pytest.mark.slow
def test_a_full_collection_runs_after_many_new_objects() -> None:
    assert asyncio.run(_garbage_is_collected(ended=0, size=MANY))


async def _left_out() -> int:
    searching = asyncio.create_task(collect_rarely(Counted()))
    await asyncio.sleep(0)
    searching.cancel()
    return gc.get_freeze_count()


def test_loaded_modules_are_excluded_from_collections() -> None:
    assert asyncio.run(_left_out()) > 100_000
