"""Writes over REST while others listen: objects created one by one, paced or as fast as it goes."""

from __future__ import annotations

import json
import random
import threading
import time
from array import array
from dataclasses import dataclass

from bench.failure import BenchFailure
from bench.servers import Target

CLASS = "BenchMessage"
ROOMS = 100
SCORES = 10_000
FIELDS = {
    "number": {"type": "Number"},
    "room": {"type": "Number"},
    "score": {"type": "Number"},
    "text": {"type": "String"},
    "sender": {"type": "String"},
    "tags": {"type": "Array"},
}
_TEXT = "Something that somebody says to all who are in the same room. " * 3
_THREADS = 8


@dataclass(frozen=True, slots=True)
class Written:
    """When the request of each number began and was answered, in microseconds of the monotonic
    clock; the first number is 1."""

    began: array[int]
    answered: array[int]
    seconds: float

    @property
    def count(self) -> int:
        return len(self.began) - 1


def body(number: int) -> str:
    """An object, made from its number alone."""
    pick = random.Random(number)
    return json.dumps(
        {
            "number": number,
            "room": pick.randrange(ROOMS),
            # So that a hundred ranges of the width of a hundred hold it.
            "score": pick.randrange(SCORES // ROOMS - 1, SCORES),
            "text": _TEXT,
            "sender": f"sender-{number % 997}",
            "tags": ["a", "b"],
        }
    )


def make_class(target: Target) -> None:
    """The class, empty, and the certainty that every process knows it."""
    with target.master() as master:
        status, _ = master.attempt("GET", f"{target.mount}/schemas/{CLASS}", None)
        if status == 200:  # of the round before
            master.send("DELETE", f"/purge/{CLASS}", None)
        else:
            master.send("POST", f"/schemas/{CLASS}", {"className": CLASS, "fields": FIELDS})
    known = 0
    until = time.monotonic() + 10
    while known < 20:
        with target.client() as client:
            status, _ = client.attempt("GET", f"{target.mount}/classes/{CLASS}?limit=1", None)
        known = known + 1 if status == 200 else 0
        if time.monotonic() > until:
            raise BenchFailure(f"{target.name} doesn't know the class {CLASS} everywhere")


def write(target: Target, first: int, count: int, rate: float | None) -> Written:
    """Create so many objects, numbered from ``first`` on: ``rate`` a second, or at full speed."""
    began, answered = array("q", [0]) * (first + count), array("q", [0]) * (first + count)
    numbers = iter(range(first, first + count))
    lock = threading.Lock()
    failures: list[BaseException] = []
    start = time.monotonic()

    def work() -> None:
        try:
            with target.client() as client:
                while True:
                    with lock:
                        number = next(numbers, None)
                    if number is None or failures:
                        return
                    text = body(number)
                    if rate:
                        time.sleep(max(0.0, start + (number - first) / rate - time.monotonic()))
                    began[number] = time.monotonic_ns() // 1000
                    client.send("POST", f"/classes/{CLASS}", text)
                    answered[number] = time.monotonic_ns() // 1000
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return Written(began[first - 1 :], answered[first - 1 :], time.monotonic() - start)
