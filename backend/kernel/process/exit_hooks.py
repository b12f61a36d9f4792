"""What a process still does when it ends: send what waits in its memory.

Python's ``atexit`` alone isn't enough. The processes of Celery's pools end by ``os._exit``, after
they have sent a signal of Celery's (``backend.celery``), and so do those of ``multiprocessing``,
after they have called what was given to ``Finalize``.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from multiprocessing.util import Finalize, register_after_fork

_functions: list[Callable[[], object]] = []


def at_end(function: Callable[[], object]) -> None:
    """Call a function when this process ends, or one that is forked from it. Those that were given
    last are called first."""
    _functions.append(function)


def end() -> None:
    """Call the functions that wait, each once."""
    while _functions:
        _functions.pop()()


atexit.register(end)
# In a new process, which begins without what its parent has given to ``Finalize``.
register_after_fork(end, lambda _: Finalize(None, end, exitpriority=0))
