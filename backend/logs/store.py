"""The latest log records of all processes, in Redis, for the admin's log view.

``keep`` costs its caller a place in a queue and nothing else: a thread of its own sends what is
there every quarter of a second, all of it by one command. It isn't the thread that writes lines to
standard error, which must not wait for Redis. Records may be lost: when Redis is away for long,
when a process is killed, when more come than the queue holds. Standard error has all of them.

The store is one stream, ``LOG_KEEP`` records long (a few more: Redis cuts whole nodes off). Each
entry has one field with the record as JSON, the line that standard error gets with
``LOG_FORMAT=json``; secrets are masked before it comes here (``backend.logs.setup.mask``).
``backend.logs.search`` reads it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any

import msgspec
import redis

from backend.kernel.connections.redis import lasting
from backend.kernel.process.exit_hooks import at_end

STREAM = "logs"
FIELD = b"r"

_DELAY = 0.25  # seconds
_PATIENCE = 1.0  # seconds that one command may take; nobody but the thread waits
_PAUSE = 2.0  # seconds before Redis is asked again that was away
_WAITING = 10_000  # records
_TOGETHER = 500  # records
_LONGEST = 16 * 1024  # bytes of a record
_CUT_TEXT = 4 * 1024  # characters that are left of each text in a longer one

# KEYS: the stream. ARGV: how many records it keeps, and the new ones.
_ADD = """
for place = 2, #ARGV do redis.call('XADD', KEYS[1], '*', 'r', ARGV[place]) end
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[1])
return #ARGV - 1
"""


class LogStore:
    """What one process has to send. Made for an address and a length; 0 keeps nothing."""

    def __init__(self, url: str, most: int) -> None:
        self.url, self.most = url, most
        self._waiting: deque[bytes] = deque(maxlen=_WAITING)
        self._sending = threading.Lock()
        self._wanted = threading.Event()
        self._begun = False
        self._add: Any = None

    def keep(self, record: bytes) -> None:
        """Take a record, as JSON. The oldest that waits is lost if there are too many."""
        self._waiting.append(record)
        if not self._wanted.is_set():
            self._wanted.set()
            if not self._begun:
                self._begin()

    def send(self) -> bool:
        """Send what waits; whether Redis took it."""
        with self._sending:
            while self._waiting:
                batch = self._taken()
                try:
                    self._script()(keys=[STREAM], args=[self.most, *map(_fitting, batch)])
                except (redis.RedisError, OSError):
                    # Not into a log: it would come here.
                    if len(self._waiting) + len(batch) <= _WAITING:
                        self._waiting.extendleft(reversed(batch))
                    return False
        return True

    def _taken(self) -> list[bytes]:
        return [self._waiting.popleft() for _ in range(min(len(self._waiting), _TOGETHER))]

    def _script(self) -> Any:
        if self._add is None:
            self._add = lasting(self.url, _PATIENCE).register_script(_ADD)
        return self._add

    def _begin(self) -> None:
        self._begun = True
        threading.Thread(target=self._work, name="log store", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            time.sleep(_DELAY)
            self._wanted.clear()
            if not self.send():
                time.sleep(_PAUSE)
                self._wanted.set()


def _fitting(record: bytes) -> bytes:
    """The record; one that is too long with its texts cut and without what still doesn't fit."""
    if len(record) <= _LONGEST:
        return record
    fields: dict[str, Any] = msgspec.json.decode(record)
    cut = {name: _cut(value) for name, value in fields.items()}
    sizes = {name: len(msgspec.json.encode(value)) + len(name) for name, value in cut.items()}
    fitting: dict[str, Any] = {}
    room = _LONGEST
    # Short ones first: what a record is found by is short.
    for name in sorted(sizes, key=sizes.__getitem__):
        room -= sizes[name]
        if room >= 0:
            fitting[name] = cut[name]
    return msgspec.json.encode({**fitting, "shortened": True})


def _cut(value: Any) -> Any:
    """The beginning and the end of a long text: the end of a trace says most."""
    if not isinstance(value, str) or len(value) <= _CUT_TEXT:
        return value
    half = _CUT_TEXT // 2
    left_out = len(value) - 2 * half
    return f"{value[:half]}\n… {left_out} characters left out …\n{value[-half:]}"


_store: LogStore | None = None


def configure(url: str, most: int) -> None:
    """Keep that many records in the Redis at this address; 0 keeps none."""
    global _store
    _store = LogStore(url, most) if most else None


def keep(record: bytes) -> None:
    """Keep a record, as JSON, if records are kept."""
    if _store is not None:
        _store.keep(record)


def is_on() -> bool:
    """Whether records are kept."""
    return _store is not None


def flush() -> None:
    """Send what this process has, now."""
    if _store is not None:
        _store.send()


def _reset_after_fork() -> None:
    """A forked process has no thread that sends, and its parent's records are not its own."""
    global _store
    if _store is not None:
        _store = LogStore(_store.url, _store.most)


os.register_at_fork(after_in_child=_reset_after_fork)
at_end(flush)
