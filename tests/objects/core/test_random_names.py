"""Random bytes come a page at a time, and no caller gets those of another."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backend.kernel.randomness import random_bytes


def test_every_call_gives_new_bytes_of_the_length_requested() -> None:
    data = [random_bytes(16) for _ in range(2000)]
    assert len(set(data)) == 2000
    assert {len(byte) for byte in data} == {16}


@pytest.mark.parametrize("length", [1, 7, 4095, 4096])
def test_pages_end_where_they_end(length: int) -> None:
    data = [random_bytes(length) for _ in range(20)]
    assert {len(byte) for byte in data} == {length}


def test_threads_get_bytes_of_their_own() -> None:
    with ThreadPoolExecutor(8) as pool:
        value = [*pool.map(lambda _: random_bytes(16), range(2000))]
    assert len(set(value)) == 2000


ROOT = Path(__file__).resolve().parents[3]
FORKS = """
import os
from backend.kernel.randomness import random_bytes

random_bytes(1)  # a page is begun
for _ in range(3):
    if os.fork() == 0:
        break
os.write(1, random_bytes(16).hex().encode() + b"\\n")
"""


def test_forked_processes_dont_get_what_their_parent_gets() -> None:
    # In a process of its own, which has no threads.
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, cwd=ROOT, check=True)
    output = done.stdout.split()
    assert len(output) == 4
    assert len(set(output)) == 4
