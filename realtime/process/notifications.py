"""Notifications of PostgreSQL: one connection a process that listens, and wakes its subscribers.

A notification only wakes its subscribers, which read the tables. A lost connection is made again;
all subscribers are woken then, since notifications may have been missed.
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
Woken = Callable[[str | None], None]

# Seconds: until a silent connection is tried, that it may take to answer, between attempts.
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
        self._woken: dict[str, list[Woken]] = {}
        self._changed = asyncio.Event()

    def subscribe(self, channel: str, woken: Woken) -> Callable[[], None]:
        """Call ``woken`` for each notification, and with ``None`` whenever the connection is made
        or the channel is listened to from now on.

        Returns what ends it. Called in the event loop; doesn't wait."""
        self._woken.setdefault(channel, []).append(woken)
        self._changed.set()

        def end() -> None:
            if woken in self._woken.get(channel, ()):
                self._woken[channel].remove(woken)

        return end

    async def run(self) -> None:
        """Listen until cancelled. A lost connection is made again, for as long as it takes."""
        attempt = 0
        await self._changed.wait()
        while True:
            try:
                await self._connected()
            except (psycopg.Error, OSError, TimeoutError) as error:
                if self.is_connected:
                    attempt = 0
                if attempt == 0:
                    log.warning("PostgreSQL isn't listened to", error=type(error).__name__)
            finally:
                self.is_connected = False
            await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    async def _connected(self) -> None:
        async with await _connect() as connection:
            listening: set[str] = set()
            while True:
                self._changed.clear()
                async with asyncio.timeout(_PATIENCE):
                    for channel in self._woken.keys() - listening:
                        await connection.execute(
                            sql.SQL("LISTEN {}").format(sql.Identifier(channel))
                        )
                    await connection.execute("SELECT 1")
                if not self.is_connected:
                    self.is_connected = True
                    self.connected += 1
                for channel in self._woken.keys() - listening:
                    listening.add(channel)
                    self._wake(channel, None)
                await self._read(connection)

    async def _read(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Take notifications until there is a new channel to listen to, or for a while."""

        async def take() -> None:
            async for notification in connection.notifies(timeout=_SILENCE):
                self._wake(notification.channel, notification.payload)

        taking = asyncio.create_task(take())
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({taking, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            taking.cancel()
            # Its end is waited for: a connection serves one task at a time.
            await asyncio.wait({taking})
        if not taking.cancelled():
            taking.result()

    def _wake(self, channel: str, payload: str | None) -> None:
        for woken in tuple(self._woken.get(channel, ())):
            try:
                woken(payload)
            except Exception as error:
                log.error("a subscriber of notifications failed", channel=channel, exc_info=error)


async def _connect() -> psycopg.AsyncConnection[Any]:
    """Open a connection. A cancelled caller leaves none behind in the server."""
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
    """What the database's connections are made with, as settings have it, but for time limits of
    statements; a dead connection is noticed by TCP too."""
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
