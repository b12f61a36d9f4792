"""Adapters of services that take HTTP/2: bounded in time, connections and responses.

``httpx`` and ``h2`` are optional packages (requirements-push.txt), imported when they are used.
Redirects aren't followed, and proxies of the environment aren't used. Responses must not be
compressed: a few bytes could become gigabytes before their size is known.
"""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

import msgspec

from backend.kernel.outgoing import retry_after
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.push.adapters.base import (
    CHUNK_WAIT,
    INTERNAL_ERROR,
    BadKey,
    BadMessage,
    Message,
    Outcome,
    failed,
    later,
)

WAIT: Final = 10.0
"""Seconds for a request as a whole."""
UNAVAILABLE_STATUSES: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may be accepted later."""
BAD_CA_FILE: Final = "PUSH_CA_FILE isn't a file of certificates in PEM form"
_MAX_RESPONSE_BYTES: Final = 64 * 1024
_MAX_CONNECTIONS: Final = 4

log = get_logger("push")


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
        return retry_after(self.headers.get("retry-after"))


class Http2Client:
    """Connections to one service. Raises ``NoResponse`` if they can't be made at all."""

    def __init__(self) -> None:
        try:
            import h2  # noqa: F401
            import httpx
        except ImportError:
            raise NoResponse("the packages of requirements-push.txt aren't installed") from None
        try:
            tls = trusted_certificates(service_settings.PUSH_CA_FILE)
        except OSError as error:
            raise NoResponse(BAD_CA_FILE) from error
        unshared = httpx.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=0)
        self._client = httpx.AsyncClient(
            # Streams have numbers: a response can't be taken for another one. Over HTTP/1.1, bytes
            # that a server sends after its response could, so no connection is used again.
            http1=False,
            http2=True,
            verify=tls,
            mounts={"http://": httpx.AsyncHTTPTransport(limits=unshared)},
            follow_redirects=False,
            trust_env=False,
            headers={"accept-encoding": "identity"},
            timeout=httpx.Timeout(WAIT),
            limits=httpx.Limits(max_connections=_MAX_CONNECTIONS),
        )

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send a request. Raises ``NoResponse``."""
        try:
            async with (
                asyncio.timeout(WAIT),
                self._client.stream("POST", url, content=body, headers=dict(headers)) as response,
            ):
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise NoResponse("its response is compressed")
                received = bytearray()
                async for piece in response.aiter_raw():
                    received += piece
                    if len(received) > _MAX_RESPONSE_BYTES:
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
        """Send a message. Raises ``BadMessage``, ``BadKey`` and ``NoResponse``."""

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        """Send messages concurrently. What takes longer than ``CHUNK_WAIT`` is cancelled."""
        if not messages:
            return []
        try:
            client = self._client = self._client or Http2Client()
        except NoResponse as error:
            log.warning("an adapter of pushes can't be used", adapter=self.service, exc_info=error)
            return [later(f"{self.service}: {error}")] * len(messages)
        tasks = [asyncio.ensure_future(self._send(message, client)) for message in messages]
        _, pending = await asyncio.wait(tasks, timeout=CHUNK_WAIT)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        exceptions = [task.exception() for task in tasks if not task.cancelled()]
        internal_errors = [exception for exception in exceptions if exception is not None]
        if internal_errors:
            # One for all: they are rarely different, and a chunk has many messages.
            log.error(
                "an adapter of pushes failed",
                adapter=self.service,
                messages=len(internal_errors),
                exc_info=internal_errors[0],
            )
        return [self._outcome_of(task) for task in tasks]

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _send(self, message: Message, client: Http2Client) -> Outcome:
        try:
            return await self.attempt(message, client)
        except BadMessage as error:
            return failed(str(error))
        except NoResponse as error:
            return later(f"{self.service}: {error}")
        except BadKey:
            return later(f"{self.key} can't be used")

    def _outcome_of(self, task: asyncio.Task[Outcome]) -> Outcome:
        if task.cancelled():
            return later(f"{self.service} didn't respond in time")
        return INTERNAL_ERROR if task.exception() is not None else task.result()


@lru_cache(maxsize=4)
def trusted_certificates(authorities: str) -> ssl.SSLContext:
    """Return a context that trusts the certificates of a file, or the system's without one.

    Raises ``OSError``, which ``ssl.SSLError`` is, for a file without certificates.
    """
    return ssl.create_default_context(cafile=authorities or None)
