"""Notifications of PostgreSQL: one connection a process that listens, and wakes its subscribers.

A notification only wakes its subscribers, which read the tables. After a reconnect all subscribers
are woken, since notifications may have been missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import psycopg
from django.conf import settings
from psycopg import sql

from backend.logs.setup import get_logger

# Called in the event loop with the payload, or with None when anything may have been missed.
Callback = Callable[[str | None], None]

# Seconds: before an idle connection is checked, for its response, and between attempts.
_SILENCE: Final = 15.0
_PATIENCE: Final = 5.0
_PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0)

log = get_logger("listener")


class Listener:
    """``LISTEN`` on the requested channels."""

    name = "listener"

    def __init__(self) -> None:
        self.is_connected = False
        self.connected = 0  # times
        self._callbacks: dict[str, list[Callback]] = {}
        self._changed = asyncio.Event()

    def subscribe(self, channel: str, callback: Callback) -> Callable[[], None]:
        """Call ``callback`` for each notification of a channel.

        It is called with None whenever notifications may have been missed: after each connect and
        when listening to the channel starts. Returns a function that unsubscribes. Call it in the
        event loop; it doesn't wait.
        """
        self._callbacks.setdefault(channel, []).append(callback)
        self._changed.set()

        def end() -> None:
            if callback in self._callbacks.get(channel, ()):
                self._callbacks[channel].remove(callback)

        return end

    async def run(self) -> None:
        """Listen until cancelled, and reconnect whenever the connection is lost."""
        attempt = 0
        await self._changed.wait()
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError, TimeoutError) as error:
                if self.is_connected:
                    attempt = 0
                if attempt == 0:
                    log.warning("PostgreSQL isn't listened to", error=type(error).__name__)
            finally:
                self.is_connected = False
            await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    async def _listen(self) -> None:
        async with await _connect() as connection:
            listening: set[str] = set()
            while True:
                self._changed.clear()
                async with asyncio.timeout(_PATIENCE):
                    for channel in self._callbacks.keys() - listening:
                        await connection.execute(
                            sql.SQL("LISTEN {}").format(sql.Identifier(channel))
                        )
                    await connection.execute("SELECT 1")
                if not self.is_connected:
                    self.is_connected = True
                    self.connected += 1
                for channel in self._callbacks.keys() - listening:
                    listening.add(channel)
                    self._wake(channel, None)
                await self._read(connection)

    async def _read(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Read notifications until a channel is added, or for ``_SILENCE`` seconds."""

        async def take() -> None:
            async for notification in connection.notifies(timeout=_SILENCE):
                self._wake(notification.channel, notification.payload)

        reading = asyncio.create_task(take())
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({reading, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            reading.cancel()
            # Wait for its end: a connection serves one task at a time.
            await asyncio.wait({reading})
        if not reading.cancelled():
            reading.result()

    def _wake(self, channel: str, payload: str | None) -> None:
        for callback in tuple(self._callbacks.get(channel, ())):
            try:
                callback(payload)
            except Exception as error:
                log.error("a subscriber of notifications failed", channel=channel, exc_info=error)


async def _connect() -> psycopg.AsyncConnection[Any]:
    """Open a connection; close it again if the caller is cancelled."""
    connecting = asyncio.ensure_future(
        psycopg.AsyncConnection.connect(**_parameters(), autocommit=True)
    )
    try:
        async with asyncio.timeout(_PATIENCE * 2):
            return await asyncio.shield(connecting)
    except BaseException:
        await asyncio.wait({connecting}, timeout=_PATIENCE)
        if connecting.cancel():
            raise
        if connecting.exception() is None:
            await connecting.result().close()
        raise


def _parameters() -> dict[str, Any]:
    """Return the connection parameters of the settings, without time limits of statements.

    TCP keepalives detect a dead connection.
    """
    entry = settings.DATABASES["default"]
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host"}
    parameters = {
        key: entry[name] for name, key in (names | {"PORT": "port"}).items() if entry[name]
    }
    options = dict(entry["OPTIONS"])
    options.pop("options", None)
    return {
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        **options,
        **parameters,
        "application_name": "backend listener",
    }
