"""Random bytes come a page at a time, and nobody gets those of another."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest

from backend.randomness import random_bytes


def test_every_call_gives_new_bytes_of_the_length_asked_for() -> None:
    given = [random_bytes(16) for _ in range(2000)]
    assert len(set(given)) == 2000
    assert {len(one) for one in given} == {16}


@pytest.mark.parametrize("length", [1, 7, 4095, 4096])
def test_pages_end_where_they_end(length: int) -> None:
    given = [random_bytes(length) for _ in range(20)]
    assert {len(one) for one in given} == {length}


def test_threads_get_bytes_of_their_own() -> None:
    with ThreadPoolExecutor(8) as pool:
        given = [*pool.map(lambda _: random_bytes(16), range(2000))]
    assert len(set(given)) == 2000


def test_forked_processes_dont_get_what_their_parent_gets() -> None:
    random_bytes(1)  # a page is begun
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    children = [fork.Process(target=lambda: queue.put(random_bytes(16))) for _ in range(3)]
    for child in children:
        child.start()
    given = [queue.get() for _ in children] + [random_bytes(16)]
    for child in children:
        child.join()
    assert len(set(given)) == 4
