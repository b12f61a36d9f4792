"""Listening for new heads over WebSockets.

A subscription only says that there may be something new: the caller then looks over HTTP. So it
may be silent, half open, late or wrong: what it says is compared with the nodes
(``chain.core.blocks.heads``). A socket that says nothing for a minute is opened anew.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final, Protocol

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from backend.logs.setup import get_logger
from chain.core.node import Height

LOOK_EVERY: Final = 5.0
"""Seconds until a network that appears, disappears or has another address is noticed."""
QUIET: Final = 60.0
"""Seconds without a message after which a socket is reopened."""
_PATIENCE = 10.0
_END = 3.0
_PING = 15.0
_SOONEST, _LATEST = 0.5, 60.0  # seconds until a lost connection is opened again
_LARGEST = 1024 * 1024
_SUBSCRIBE = '{"jsonrpc":"2.0","id":%d,"method":"eth_subscribe","params":["newHeads"]}'
_ids: Final = count(random.randrange(1, 2**30))

log = get_logger("chain")


class _Message(msgspec.Struct):
    method: str = ""
    id: int | str | None = None
    result: Any = None
    error: Any = None
    params: Any = None


class _Head(msgspec.Struct):
    number: Height


class _Params(msgspec.Struct):
    result: _Head


_message = msgspec.json.Decoder(_Message)


class Refusal(Exception):
    """The node doesn't subscribe, or sends what belongs to another subscription."""


class Listener(Protocol):
    """Receives what happens to the subscriptions, in their thread. Must return at once."""

    def opened(self, network_id: int) -> None:
        """The node has accepted a subscription."""

    def announced(self, network_id: int, height: int | None) -> None:
        """There is a new head; None if the message doesn't say at which height."""

    def closed(self, network_id: int) -> None:
        """The subscription has ended, or was refused; it is tried again if the network still has
        this address."""


class Subscriptions:
    """Subscriptions of all networks, in one thread.

    ``urls`` returns the address of each network; it is called every few seconds, in a thread of its
    own.
    """

    def __init__(
        self,
        urls: Callable[[], Mapping[int, str]],
        listener: Listener,
        *,
        look_every: float = LOOK_EVERY,
        quiet: float = QUIET,
    ) -> None:
        self._urls = urls
        self._listener = listener
        self._look_every = look_every
        self._quiet = quiet
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chain-heads", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._started.wait(_PATIENCE)

    def stop(self) -> None:
        """End all subscriptions and the thread."""
        if self._loop is not None and self._main is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._main.cancel)
            self._thread.join(_END)

    def _run(self) -> None:
        try:
            asyncio.run(self._listen_to_all())
        except asyncio.CancelledError:
            return

    async def _listen_to_all(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._started.set()
        running: dict[tuple[int, str], asyncio.Task[None]] = {}
        try:
            while True:
                targets = await self._wanted(running)
                for key in running.keys() - targets:
                    running.pop(key).cancel()
                    self._listener.closed(key[0])
                for key in targets - running.keys():
                    running[key] = asyncio.create_task(self._listen(*key))
                await asyncio.sleep(self._look_every)
        finally:
            for task in running.values():
                task.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)

    async def _wanted(self, running: Mapping[tuple[int, str], object]) -> set[tuple[int, str]]:
        try:
            return {*(await asyncio.to_thread(self._urls)).items()}
        except Exception as error:  # the database is away: what runs goes on
            log.warning("networks can't be looked up", error=type(error).__name__)
            return {*running}

    async def _listen(self, network_id: int, url: str) -> None:
        delay = _SOONEST
        while True:
            began = asyncio.get_running_loop().time()
            try:
                async with connect(
                    url,
                    open_timeout=_PATIENCE,
                    close_timeout=1,
                    ping_interval=_PING,
                    ping_timeout=_PING,
                    max_size=_LARGEST,
                    proxy=None,
                ) as socket:
                    try:
                        await self._hear(network_id, socket)
                    except Exception:
                        self._listener.closed(network_id)
                        raise
            except Exception as error:
                # No failure ends the subscription. Its text may contain the address.
                log.debug("no new heads", network=network_id, error=type(error).__name__)
            if asyncio.get_running_loop().time() - began > self._quiet:
                delay = _SOONEST
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(_LATEST, delay * 2)

    async def _hear(self, network_id: int, socket: ClientConnection) -> None:
        request_id = next(_ids)
        await socket.send(_SUBSCRIBE % request_id)
        subscription: Any = None  # its id
        while True:
            async with asyncio.timeout(self._quiet):
                text = await socket.recv()
            try:
                message = _message.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if message.error is not None:
                raise Refusal
            if message.method == "eth_subscription":
                if _subscription(message.params) not in (None, subscription):
                    raise Refusal
                self._listener.announced(network_id, _height(message.params))
            elif message.id is None:
                continue
            elif subscription is None and str(message.id) == str(request_id):
                subscription = message.result
                self._listener.opened(network_id)
            else:
                raise Refusal


def _subscription(params: Any) -> Any:
    return params.get("subscription") if isinstance(params, dict) else None


def _height(params: Any) -> int | None:
    try:
        return int(msgspec.convert(params, _Params).result.number, 16)
    except msgspec.ValidationError:
        return None
