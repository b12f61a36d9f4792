"""Handing tasks to workers, from what must not wait for Redis: requests above all.

Celery's own way waits for a Redis that doesn't answer without end, and its ten connections with
it: a few requests would hold every thread. Here Redis has ``PATIENCE`` seconds. After it hasn't
answered it isn't asked for ``PAUSE`` seconds.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final, NamedTuple

import redis
from celery import Task, current_app
from kombu.exceptions import LimitExceeded, OperationalError
from kombu.pools import ProducerPool
from structlog.contextvars import get_contextvars

from backend.kernel.process.exit_hooks import at_end
from backend.logs.setup import get_logger

PATIENCE: Final = 0.5
"""Seconds that Redis has for a connection, and for each answer."""
PAUSE: Final = 2.0
"""Seconds in which it isn't asked again after it hasn't answered."""
LAST: Final = 5.0
"""Seconds that a process which ends has for the tasks that still wait."""
HEADER: Final = "request_id"
"""The header of a task's message with the id of the request that has caused it."""
_CONNECTIONS: Final = 16
_MOST: Final = 10_000  # tasks that wait
_MOST_BYTES: Final = 32 * 1024 * 1024

log = get_logger("broker")


class BrokerAway(Exception):
    """The task wasn't handed over, since Redis doesn't answer."""


class _Waiting(NamedTuple):
    task: Task
    args: Sequence[Any]
    options: Mapping[str, Any]
    size: int


class _Broker:
    """The broker as one process knows it."""

    def __init__(self) -> None:
        self._away_until = 0.0
        self._producers: ProducerPool | None = None
        self._making = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._handing_over = threading.Lock()
        self._lock = threading.Lock()
        self._something_waits = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None

    def send(self, task: Task | str, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        self._check()
        try:
            with self._pool().acquire(block=True, timeout=PATIENCE) as producer:
                # Another thread may have learnt meanwhile that Redis doesn't answer.
                self._check()
                send_options = {
                    "producer": producer,
                    # At once, for a connection that Redis has closed since.
                    "retry_policy": {"max_retries": 1, "interval_start": 0, "interval_max": 0},
                    **options,
                }
                if isinstance(task, str):
                    current_app.send_task(task, tuple(args), **send_options)
                else:
                    task.apply_async(tuple(args), **send_options)
        except LimitExceeded as error:
            raise BrokerAway(f"All {_CONNECTIONS} connections to Redis are in use.") from error
        except (OperationalError, redis.RedisError, OSError) as error:
            self._away_until = monotonic() + PAUSE
            raise BrokerAway(str(error)) from error

    def send_later(self, task: Task, args: Sequence[Any]) -> None:
        size = len(repr(args))  # about as many bytes as its message has
        # Another thread sends it, which doesn't know the request.
        request_id = get_contextvars().get(HEADER)
        options = {"headers": {HEADER: request_id}} if request_id else {}
        with self._lock:
            if len(self._waiting) >= _MOST or self._bytes + size > _MOST_BYTES:
                log.error("a task is lost: too many wait for the broker", task=task.name)
                return
            self._waiting.append(_Waiting(task, args, options, size))
            self._bytes += size
            self._something_waits.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="broker", daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """Hand over what waits, as far as Redis takes it within ``LAST`` seconds."""
        end = monotonic() + LAST
        self._away_until = 0.0
        with suppress(BrokerAway):
            while monotonic() < end and self._hand_over():
                pass
        with self._lock:
            if self._waiting:
                tasks = len(self._waiting)
                log.error("tasks are lost: the process ends without a broker", tasks=tasks)
                self._waiting.clear()
                self._bytes = 0

    def _check(self) -> None:
        if monotonic() < self._away_until:
            raise BrokerAway("Redis didn't answer a moment ago.")

    def _pool(self) -> ProducerPool:
        with self._making:
            if self._producers is None:
                connection = current_app.connection_for_write(
                    transport_options={
                        "socket_timeout": PATIENCE,
                        "socket_connect_timeout": PATIENCE,
                        "retry_on_timeout": False,
                    }
                )
                connections = connection.Pool(limit=_CONNECTIONS)
                self._producers = ProducerPool(connections, limit=_CONNECTIONS)
            return self._producers

    def _work(self) -> None:
        pause = threading.Event()
        while True:
            with self._something_waits:
                while not self._waiting:
                    self._something_waits.wait()
            try:
                self._hand_over()
            except BrokerAway:
                pause.wait(PAUSE)

    def _hand_over(self) -> bool:
        """Hand over the oldest that waits; False if none does."""
        with self._handing_over:
            with self._lock:
                if not self._waiting:
                    return False
                oldest = self._waiting[0]
            try:
                self.send(oldest.task, oldest.args, oldest.options)
            except BrokerAway:
                raise
            except Exception:
                # Such as arguments that aren't JSON: it could never be sent, and the others wait.
                log.exception("a task is lost: it can't be sent", task=oldest.task.name)
            with self._lock:
                if self._waiting:  # ``finish`` may have given them up
                    self._waiting.popleft()
                    self._bytes -= oldest.size
            return True


_broker = _Broker()


def _begin_again() -> None:
    """A forked process has no thread that sends, and its parent's tasks are not its own."""
    global _broker
    _broker = _Broker()


os.register_at_fork(after_in_child=_begin_again)
at_end(lambda: _broker.finish())


def send(task: Task | str, *args: Any, **options: Any) -> None:
    """Hand a task over, now. ``options`` are those of Celery's ``apply_async``. Raises
    ``BrokerAway``, within a second or two."""
    _broker.send(task, args, options)


def send_surely(task: Task, *args: Any) -> None:
    """Hand a task over, now or as soon as Redis answers again. It is lost if this process is killed
    before, or if ten thousand wait."""
    try:
        _broker.send(task, args, {})
    except BrokerAway as error:
        log.warning("a task waits for the broker", task=task.name, reason=str(error))
        _broker.send_later(task, args)
