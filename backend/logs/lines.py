"""Lines to standard error, whole ones only, in the order in which they were given.

``write`` has written the line when it returns. ``write_soon`` lets it wait for others, at most a
tenth of a second, since a system call for each request took a tenth of the request's time: every
one lets another thread have the interpreter. A process that is killed loses what waits; one that
ends writes it.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Iterator

from backend.kernel.process.exit_hooks import at_end

_STANDARD_ERROR = 2
_DELAY = 0.1  # seconds
# A pipe keeps a write of this many bytes together, also where several processes write to it.
_TOGETHER = select.PIPE_BUF


class _Lines:
    """The lines of one process that are not written yet."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._writing = threading.Lock()
        self._wanted = threading.Event()
        self._begun = False

    def add(self, line: bytes) -> None:
        self._waiting.append(line)
        if not self._wanted.is_set():
            self._wanted.set()
            if not self._begun:
                self._begin()

    def write(self, *last: bytes) -> None:
        """Write what waits, and these after it."""
        with self._writing:
            self._waiting.extend(last)
            for block in _blocks(self._waiting):
                _write(block)

    def _begin(self) -> None:
        self._begun = True
        threading.Thread(target=self._work, name="log lines", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            time.sleep(_DELAY)
            self._wanted.clear()
            self.write()


def _blocks(lines: deque[bytes]) -> Iterator[bytes]:
    """All lines, taken out and put together to blocks that a pipe doesn't divide."""
    block = b""
    while lines:
        line = lines.popleft() + b"\n"
        if block and len(block) + len(line) > _TOGETHER:
            yield block
            block = b""
        block += line
    if block:
        yield block


def _write(block: bytes) -> None:
    """A log that can't be written never stops the work."""
    remaining = memoryview(block)
    with contextlib.suppress(OSError):
        while remaining:
            remaining = remaining[os.write(_STANDARD_ERROR, remaining) :]


_lines = _Lines()


def _reset_after_fork() -> None:
    """A forked process has no thread that writes, and its parent's lines are not its own."""
    global _lines
    _lines = _Lines()


os.register_at_fork(after_in_child=_reset_after_fork)
at_end(lambda: _lines.write())


def write(line: bytes) -> None:
    """Write a line, after all that wait."""
    _lines.write(line)


def write_soon(line: bytes) -> None:
    """Write a line within a tenth of a second."""
    _lines.add(line)
