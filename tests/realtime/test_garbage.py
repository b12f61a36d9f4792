"""A process with many connections searches for garbage seldom, and finds it in the end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from realtime.garbage import search_seldom

MANY = 300_000  # objects, more than what sets off a search


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
    found: int = gc.get_stats()[2]["collections"]
    return found


async def _dead_connection_is_found() -> None:
    searching = asyncio.create_task(search_seldom(look=0.001))
    await asyncio.sleep(0)  # it has begun
    dead = weakref.ref(Dead(MANY))
    assert dead() is not None
    async with asyncio.timeout(30):
        while dead() is not None:
            await asyncio.sleep(0.001)
    searching.cancel()


def test_dead_connections_are_found_after_many_objects() -> None:
    asyncio.run(_dead_connection_is_found())


async def _searches_while_few_objects_come() -> int:
    searching = asyncio.create_task(search_seldom(look=0.001))
    await asyncio.sleep(0)
    before = searches()
    kept = [[number] for number in range(MANY // 10)]
    for _ in range(50):
        transient = [[number] for number in range(1_000)]
        del transient
        await asyncio.sleep(0.001)
    searching.cancel()
    assert len(kept) == MANY // 10
    return searches() - before


def test_nothing_is_searched_while_few_objects_come() -> None:
    assert asyncio.run(_searches_while_few_objects_come()) == 0


async def _left_out() -> int:
    searching = asyncio.create_task(search_seldom())
    await asyncio.sleep(0)
    searching.cancel()
    return gc.get_freeze_count()


def test_what_was_loaded_is_left_out() -> None:
    assert asyncio.run(_left_out()) > 100_000
