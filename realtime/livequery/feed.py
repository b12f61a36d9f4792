"""The thread that reads committed changes and hands them to the event loop, in order.

A batch is handed over when the previous one has been sent, so a slow process reads larger batches
instead of queueing them. Nothing is read while no class is requested.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from time import monotonic
from typing import Any, Final

from django.db import connections

from backend.kernel.errors import ServiceError, ServiceUnavailable
from backend.logs.setup import get_logger
from objects.changes import KEPT, WANTED_FOR, Batch, Reader
from realtime.livequery.identities import SESSIONS, Identities, SessionChanges

RETRY: Final = 1.0
"""Seconds until the next attempt after PostgreSQL didn't answer."""
_TRIM: Final = KEPT / 6
_LAST_READING: Final = 5.0
# Seconds between reads while changes arrive: a read costs PostgreSQL as much as several changes.
_PACE: Final = 0.01
_MANY: Final = 200

log = get_logger("livequery")

# Gets a batch and its effects on sessions; returns when its messages are queued.
Publish = Callable[[Batch, SessionChanges], Coroutine[Any, Any, None]]


class Feed:
    """One reader, and its thread. Methods are called in the event loop."""

    def __init__(self, identities: Identities, publish: Publish) -> None:
        self._identities = identities
        self._publish = publish
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._is_over = False
        # Guarded by the lock: the requested classes, and the callers that wait for their capture.
        self._wanted: frozenset[str] = frozenset()
        self._waiting: list[Future[frozenset[str]]] = []
        self._thread = threading.Thread(target=self._work, name="livequery", daemon=True)
        self.read_at: float | None = None
        """When something was last read, by ``monotonic``."""

    async def run(self) -> None:
        """Read until cancelled. Raises what ends the thread."""
        self._thread.start()
        try:
            await asyncio.shield(self._ended)
        finally:
            self._is_over = True
            self._wake.set()
            await asyncio.wait([self._ended], timeout=_LAST_READING)

    def wake(self) -> None:
        """Read now: changes were committed."""
        self._wake.set()

    async def request(self, class_names: frozenset[str]) -> frozenset[str]:
        """Capture these classes, and no others, until the next call.

        Returns the captured classes once they are captured.

        Raises ``ServiceError`` if PostgreSQL can't be reached.
        """
        waiting: Future[frozenset[str]] = Future()
        with self._lock:
            self._wanted = class_names
            self._waiting.append(waiting)
        self._wake.set()
        return await asyncio.wrap_future(waiting)

    def release(self, class_names: frozenset[str]) -> None:
        """Capture only these classes from the next read on."""
        with self._lock:
            self._wanted = class_names

    # -- In the thread ------------------------------------------------------------------------

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            while not self._is_over:
                self._wake.wait(WANTED_FOR / 3)
                self._wake.clear()
                if self._wanted:
                    self._read_loop()
        except BaseException as raised:
            error = raised
        finally:
            connections.close_all()
            self._loop.call_soon_threadsafe(self._end, error)

    def _end(self, error: BaseException | None) -> None:
        for future in self._take_waiting():
            future.set_exception(ServiceUnavailable("Live queries begin again; try again."))
        if self._ended.done():
            return
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    def _read_loop(self) -> None:
        """Read with one reader for as long as classes are requested."""
        reader = Reader()
        captured: frozenset[str] = frozenset()
        asked_at = trimmed_at = 0.0
        try:
            while not self._is_over:
                with self._lock:
                    class_names, waiting = self._wanted, self._take_waiting()
                try:
                    if waiting or not class_names <= captured or _is_due(asked_at, WANTED_FOR / 3):
                        self._want(reader, class_names, waiting)
                        captured, asked_at = class_names, monotonic()
                        if not class_names:
                            return
                    begun = monotonic()
                    batch = reader.read()
                except ServiceError as error:
                    self._pause_after(error)
                    continue
                # Hand over the batch before anything else can fail.
                self._hand_over(batch)
                try:
                    if _is_due(trimmed_at, _TRIM):
                        reader.trim()
                        trimmed_at = monotonic()
                    self._wait(_pause(batch, begun) if batch.changes else reader.sleep())
                except ServiceError as error:
                    self._pause_after(error)
        finally:
            reader.close()

    def _pause_after(self, error: ServiceError) -> None:
        log.warning("committed changes can't be read", error=error.message)
        self._wait(RETRY)

    def _take_waiting(self) -> list[Future[frozenset[str]]]:
        taken, self._waiting = self._waiting, []
        return [future for future in taken if future.set_running_or_notify_cancel()]

    def _want(
        self, reader: Reader, class_names: frozenset[str], waiting: list[Future[frozenset[str]]]
    ) -> None:
        try:
            reader.want(class_names)
        except BaseException as error:
            for future in waiting:
                future.set_exception(error)
            raise
        for future in waiting:
            future.set_result(class_names)

    def _hand_over(self, batch: Batch) -> None:
        effects = self._follow(batch)
        self.read_at = monotonic()
        if batch.changes or batch.gap or effects.ended or effects.changed:
            asyncio.run_coroutine_threadsafe(self._publish(batch, effects), self._loop).result()

    def _follow(self, batch: Batch) -> SessionChanges:
        """Return the effects of a batch on sessions, which must be known before it is published."""
        ended = SessionChanges()
        while True:
            try:
                if SESSIONS in batch.gap:
                    effects = self._identities.reload()
                    ended.ended += effects.ended
                    ended.changed += effects.changed
                effects = self._identities.follow(batch.changes, batch.role_version)
                ended.ended += effects.ended
                ended.changed += effects.changed
                return ended
            except ServiceError as error:
                log.warning("sessions can't be read", error=error.message)
                self._wait(RETRY)
                if self._is_over:
                    raise

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            self._wake.wait(seconds)
        self._wake.clear()


def _is_due(last: float, every: float) -> bool:
    return monotonic() - last >= every


def _pause(batch: Batch, begun: float) -> float:
    """Return the seconds to wait after a batch with changes; 0 if more changes are likely."""
    return 0 if len(batch.changes) >= _MANY else begun + _PACE - monotonic()
