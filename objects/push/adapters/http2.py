"""Adapters of services that take HTTP/2: bounded in time, connections and responses.

``httpx`` and ``h2`` are optional packages (requirements-push.txt), imported when they are used.
Redirects aren't followed, and proxies of the environment aren't used.
"""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from time import time
from typing import Any, ClassVar, Final

import msgspec

from backend.settings.conf import service_settings
from objects.push.adapters.base import BadMessage, Message, Outcome, failed, later

WAIT: Final = 10.0
"""Seconds for a request as a whole."""
CHUNK_WAIT: Final = 30.0
"""Seconds for all requests of a chunk."""
UNAVAILABLE: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may be accepted later."""
_LARGEST: Final = 64 * 1024  # bytes of a response
_CONNECTIONS: Final = 4
_MESSAGES_AT_ONCE: Final = 50


class NoResponse(Exception):
    """No usable response; the text says why, without the address and what was sent."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response of any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the JSON object of the body, or an empty one for anything else."""
        try:
            value = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def retry_after(self) -> float | None:
        """Seconds until the next request, as the service asks for; None if it doesn't."""
        text = self.headers.get("retry-after", "")
        if text.isdecimal() and len(text) <= 9:
            return float(text)
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time())
        except (ValueError, TypeError, IndexError, OverflowError):
            return None


class Http2Client:
    """Connections to one service."""

    def __init__(self) -> None:
        try:
            import h2  # noqa: F401
            import httpx
        except ImportError:
            raise NoResponse("the packages of requirements-push.txt aren't installed") from None
        self._httpx = httpx
        self._client = httpx.AsyncClient(
            http2=True,
            verify=_tls(service_settings.PUSH_CA_FILE),
            follow_redirects=False,
            trust_env=False,
            timeout=httpx.Timeout(WAIT),
            limits=httpx.Limits(max_connections=_CONNECTIONS),
        )

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send a request. Raises ``NoResponse``."""
        try:
            async with (
                asyncio.timeout(WAIT),
                self._client.stream("POST", url, content=body, headers=dict(headers)) as response,
            ):
                received = bytearray()
                async for piece in response.aiter_bytes():
                    received += piece
                    if len(received) > _LARGEST:
                        raise NoResponse("its response is too large")
                return Response(response.status_code, response.headers, bytes(received))
        except TimeoutError:
            raise NoResponse("it didn't respond in time") from None
        # Also what h2 raises for frames that aren't HTTP/2, and anyio for a connection that breaks.
        except NoResponse:
            raise
        except Exception as error:
            raise NoResponse(f"the connection failed ({type(error).__name__})") from None

    async def close(self) -> None:
        await self._client.aclose()


class Http2Adapter(ABC):
    """An adapter that sends each message by a request to one service."""

    service: ClassVar[str]
    """Its name in reasons."""
    key: ClassVar[str]
    """What proves to it who sends, in reasons."""

    def __init__(self) -> None:
        self._client: Http2Client | None = None

    @abstractmethod
    async def attempt(self, message: Message, client: Http2Client) -> Outcome:
        """Send a message.

        Raises ``BadMessage``, ``NoResponse``, and ``ValueError`` or ``TypeError`` for a key that
        can't be used.
        """

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        """Send messages concurrently. What takes longer than ``CHUNK_WAIT`` is cancelled."""
        turns = asyncio.Semaphore(_MESSAGES_AT_ONCE)

        async def send(message: Message) -> Outcome:
            async with turns:
                return await self._send(message)

        tasks = [asyncio.ensure_future(send(message)) for message in messages]
        if tasks:
            _, pending = await asyncio.wait(tasks, timeout=CHUNK_WAIT)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        unfinished = later(f"{self.service} didn't respond in time")
        return [
            unfinished if task.cancelled() or task.exception() is not None else task.result()
            for task in tasks
        ]

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _send(self, message: Message) -> Outcome:
        try:
            if self._client is None:
                self._client = Http2Client()
            return await self.attempt(message, self._client)
        except BadMessage as error:
            return failed(str(error))
        except NoResponse as error:
            return later(f"{self.service}: {error}")
        except (ValueError, TypeError):
            return later(f"{self.key} can't be used")


@lru_cache(maxsize=4)
def _tls(authorities: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authorities or None)
