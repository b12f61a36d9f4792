"""Exceptions that a thread receives from outside of the code that it runs.

Code of the deployment may raise anything, ``SystemExit`` included, and none of it may end a thread.
Handlers that catch everything let these pass: they concern the thread itself.
"""

from __future__ import annotations

import signal
import sys
import threading


class Interruption(BaseException):
    """Raised in a thread by the service: a time limit, or a run that was lost."""


def is_from_outside(error: BaseException) -> bool:
    """Whether an exception is an ``Interruption``, Ctrl-C at a terminal, or the end of a worker."""
    # An exception of the deployment may have a ``__class__`` that raises.
    kind = type(error)
    if issubclass(kind, Interruption):
        return True
    if threading.current_thread() is not threading.main_thread():
        return False
    if issubclass(kind, KeyboardInterrupt):
        return signal.getsignal(signal.SIGINT) is signal.default_int_handler
    # Celery's workers end by a SystemExit that their handler of SIGTERM raises.
    workers = sys.modules.get("billiard.common")
    return issubclass(kind, SystemExit) and bool(workers and workers.terminate_handler_fired())
