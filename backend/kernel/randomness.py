"""Random bytes for names: ids of objects and of requests.

They come from the operating system, a page at a time for each thread: a system call for every
name lets another thread have the interpreter, which costs more than the call.

Not for secrets, which ``secrets`` makes: a page lies in memory for a while after its use.
"""

from __future__ import annotations

import os
import threading

_PAGE = 4096


class _Page(threading.local):
    content = b""
    used = 0


_page = _Page()


def _reset_after_fork() -> None:
    """A forked process must not make the names that its parent makes."""
    global _page
    _page = _Page()


os.register_at_fork(after_in_child=_reset_after_fork)


def random_bytes(count: int) -> bytes:
    """Return ``count`` unpredictable bytes, at most a page of 4096. None is returned twice."""
    page = _page
    start = page.used
    end = start + count
    if end > len(page.content):
        page.content = os.urandom(_PAGE)
        start, end = 0, count
    page.used = end
    return page.content[start:end]
