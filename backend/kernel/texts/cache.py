"""``lru_cache`` for functions of texts that clients send.

What is remembered under a client's text is as long as the client likes, thousands of times over.
Here long ones are worked out each time, and only short ones are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Remembering(Protocol[_T_co]):
    """A function whose results are remembered."""

    def __call__(self, text: str, *arguments: Hashable) -> _T_co: ...

    def cache_clear(self) -> None: ...


def short_cache(*, maxsize: int, longest: int) -> Callable[[Callable[..., _T]], Remembering[_T]]:
    """Remember ``maxsize`` results at most, of texts (the first argument) of at most ``longest``
    characters."""

    def decorate(function: Callable[..., _T]) -> Remembering[_T]:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def remembering(text: str, *arguments: Hashable) -> _T:
            return (cached if len(text) <= longest else function)(text, *arguments)

        result: Any = remembering
        result.cache_clear = cached.cache_clear
        return result

    return decorate
