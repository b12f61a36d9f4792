"""Requests in the bodies of requests that are refused early: exactly one response may come back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from bench.attack.attacks import Attack, Attacker
from bench.attack.scene import MOUNT, VICTIM, Scene
from bench.attack.wire import Wire, chunk, head

_INNER = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
_QUIET = 0.5
"""Seconds without another byte after which no further response is expected."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A request that is answered before its body is of any interest."""

    name: str
    method: str
    path: str
    headers: Mapping[str, str]
    is_client: bool = True


_JSON = {"Content-Type": "application/json"}
_TEXT = {"Content-Type": "text/plain"}
_REFUSALS = (
    _Refusal("upload without rights", "POST", f"{MOUNT}/files/a.txt", _TEXT),
    _Refusal("media type", "POST", f"{MOUNT}/classes/{VICTIM}", {"Content-Type": "text/csv"}),
    _Refusal("unknown route", "POST", f"{MOUNT}/nothing", _JSON),
    _Refusal("unknown route of the site", "POST", "/nothing", _JSON),
    _Refusal("method", "PATCH", f"{MOUNT}/classes/{VICTIM}", _JSON),
    _Refusal("options", "OPTIONS", f"{MOUNT}/classes/{VICTIM}", _JSON),
    _Refusal("no credentials", "POST", f"{MOUNT}/classes/{VICTIM}", _JSON, is_client=False),
    _Refusal("get", "GET", f"{MOUNT}/classes/{VICTIM}?limit=1", {}),
    _Refusal("health", "GET", "/health", {}),
    _Refusal("head", "HEAD", "/health", {}),
    _Refusal("delete", "DELETE", f"{MOUNT}/classes/{VICTIM}/aaaaaaaaaa", _JSON),
    _Refusal("admin", "POST", "/admin/login/", _TEXT),
    _Refusal("expect", "POST", f"{MOUNT}/files/a.txt", {"Expect": "100-continue"}),
    _Refusal("sockets", "POST", "/ws", _JSON),
    _Refusal("live queries", "POST", "/livequery", _JSON),
)

_SIZES = (600, 12_000)
"""Requests in a body: 24 KB, which buffers of servers and proxies hold, and 480 KB."""
_TOO_LARGE = 600_000
_CASES = [
    (refusal, inner, is_chunked)
    for refusal in _REFUSALS
    for inner in (*_SIZES, *((_TOO_LARGE,) if refusal in _REFUSALS[:2] else ()))
    for is_chunked in (False, True)
]


class Smuggling(Attack):
    name = "request smuggling"
    description = "bodies made of requests after 15 early refusals, by length and in chunks"
    attackers = len(_CASES)
    most = 1_000
    pause = 1.0
    allowance = 128
    short = True

    async def attack(self, attacker: Attacker) -> None:
        refusal, inner, is_chunked = _CASES[attacker.number]
        async with await attacker.connect() as wire:
            data = _request(refusal, inner, is_chunked, attacker.scene)
            responses = await _responses(wire, data)
        if responses == 0:
            attacker.tally.answers["closed"] += 1
        else:
            attacker.tally.answers["answered"] += 1
        if responses > 1:
            framing = "in chunks" if is_chunked else "by length"
            what = f"{refusal.name}, {framing}, {inner:,} inside"
            attacker.tally.faults[f"{responses} responses to one request ({what})"] += 1


def _request(refusal: _Refusal, inner: int, is_chunked: bool, scene: Scene) -> bytes:
    body = _INNER * inner
    headers = {**(scene.client if refusal.is_client else {}), **refusal.headers}
    if is_chunked:
        # One chunk a request, so that a reader that skips lines of sizes finds requests too.
        size = len(_INNER) * max(inner // 600, 1)
        parts = (chunk(body[at : at + size]) for at in range(0, len(body), size))
        headers["Transfer-Encoding"] = "chunked"
        return head(refusal.method, refusal.path, headers) + b"".join(parts) + chunk(b"")
    headers["Content-Length"] = str(len(body))
    return head(refusal.method, refusal.path, headers) + body


async def _responses(wire: Wire, data: bytes) -> int:
    """How many responses came on a connection, 100 Continue aside."""
    received = bytearray()

    async def read() -> None:
        while True:
            try:
                patience = _QUIET if received else 10.0
                part = await asyncio.wait_for(wire.reader.read(1 << 16), patience)
            except (TimeoutError, ConnectionError):
                return
            if not part:
                return
            received.extend(part)

    reading = asyncio.ensure_future(read())
    with contextlib.suppress(TimeoutError, ConnectionError):
        await asyncio.wait_for(wire.send(data), 10.0)
    await reading
    return received.count(b"HTTP/1.1 ") - received.count(b"HTTP/1.1 100")


ATTACKS = (Smuggling,)
