"""Tokens that prove who sends, signed by the keys in the settings; shared by a process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import time
from typing import Final

_lock = threading.Lock()
_tokens: dict[str, tuple[str, float]] = {}
_MAX_TOKENS: Final = 16


def cached(key: str) -> str | None:
    """Return the token of a key if it is still valid."""
    with _lock:
        token, end = _tokens.get(key, ("", 0.0))
        return token if time() < end else None


def store(key: str, token: str, seconds: float) -> None:
    """Keep a token for so many seconds."""
    with _lock:
        if len(_tokens) >= _MAX_TOKENS:
            _tokens.clear()
        _tokens[key] = (token, time() + seconds)


def forget(key: str, token: str) -> None:
    """Forget a token that a service has refused, unless there is a newer one already."""
    with _lock:
        if _tokens.get(key, ("", 0.0))[0] == token:
            del _tokens[key]


def or_new(key: str, seconds: float, make: Callable[[], str]) -> str:
    """Return the token of a key, or make one that is valid for so many seconds."""
    token = cached(key)
    if token is None:
        token = make()
        store(key, token, seconds)
    return token
