"""How classes of SQL are registered for what they compile: operators, stages, accumulators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

K = TypeVar("K")
R = TypeVar("R")


def register(readings: dict[K, Any], keys: Iterable[K]) -> Callable[[type[R]], type[R]]:
    """Return a decorator of a class whose instances compile these keys.

    It adds an instance to ``readings`` for each key. Raises ``TypeError`` for a key that has one.
    """

    def add(reading: type[R]) -> type[R]:
        for key in keys:
            if key in readings:
                raise TypeError(f"{getattr(key, '__name__', key)} has two classes of SQL")
            readings[key] = reading()
        return reading

    return add
