"""A process with many connections searches for garbage seldom, and finds it in the end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from realtime.process.garbage import search_seldom

MANY = 2_500_000  # objects, more than what sets off a search


class Dead:
    """A connection that is gone, and refers to itself."""

    def __init__(self, number_of_objects: int) -> None:
        self.myself = self
        self.rest: list[list[int]] = [[number] for number in range(number_of_objects)]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
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
    """A process with 8,000 connections, which knows how often it was asked for them."""

    ended = 0
    looks = 0

    @property
    def sockets(self) -> range:
        self.looks += 1
        return range(8_000)


async def _dead_is_found(ended: int, size: int) -> bool:
    """Whether a dead object is given back, after so many connections have ended."""
    process = Counted()
    searching = asyncio.create_task(search_seldom(process, look=0.001))
    await asyncio.sleep(0)  # it has begun
    dead = weakref.ref(Dead(size))
    process.ended, observed = ended, process.looks
    async with asyncio.timeout(30):
        while process.looks < observed + 20 and dead() is not None:
            await asyncio.sleep(0.001)
    searching.cancel()
    return dead() is None


def test_what_many_connections_left_behind_is_found() -> None:
    assert asyncio.run(_dead_is_found(ended=2_000, size=10))


def test_nothing_is_searched_after_few_have_ended() -> None:
    before = searches()
    assert not asyncio.run(_dead_is_found(ended=1_999, size=10))
    assert searches() == before + 1  # before it left out what is loaded


def test_everything_is_searched_after_many_objects() -> None:
    assert asyncio.run(_dead_is_found(ended=0, size=MANY))


async def _left_out() -> int:
    searching = asyncio.create_task(search_seldom(Counted()))
    await asyncio.sleep(0)
    searching.cancel()
    return gc.get_freeze_count()


def test_what_was_loaded_is_left_out() -> None:
    assert asyncio.run(_left_out()) > 100_000
