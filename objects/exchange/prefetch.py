"""Items that a thread makes while the caller works on those that it made before."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Generic, TypeVar

T = TypeVar("T")


class _End(Generic[T]):
    """Nothing follows; ``error`` is what ended it, if it wasn't its end."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


@contextmanager
def ahead(items: Iterable[T], depth: int) -> Iterator[Iterator[T]]:
    """Yield the same items, at most ``depth`` of them made in advance; in the same order.

    What making them raises is raised where they are read. The thread has ended when the block ends.
    """
    queue: Queue[T | _End[T]] = Queue(depth)
    over = threading.Event()

    def make() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                queue.put(item)
                if over.is_set():
                    return
        except BaseException as raised:
            error = raised
        queue.put(_End(error))

    def made() -> Iterator[T]:
        while True:
            item = queue.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item

    thread = threading.Thread(target=make, name="import-reader", daemon=True)
    thread.start()
    try:
        yield made()
    finally:
        over.set()
        while thread.is_alive():
            # It may wait for room.
            try:
                queue.get(timeout=0.05)
            except Empty:
                continue
        thread.join()
