"""Handshakes and frames of WebSocket, over a ``Wire``."""

from __future__ import annotations

import asyncio

from bench.attack.wire import Closed, Wire

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def frame(text: str | bytes, opcode: int = 1, *, is_final: bool = True) -> bytes:
    """A frame of a client. Its mask is zero, so its payload is what it was."""
    data = text.encode() if isinstance(text, str) else text
    first = bytes([opcode | (0x80 if is_final else 0)])
    if len(data) < 126:
        size = bytes([0x80 | len(data)])
    elif len(data) < 1 << 16:
        size = bytes([0x80 | 126]) + len(data).to_bytes(2, "big")
    else:
        size = bytes([0x80 | 127]) + len(data).to_bytes(8, "big")
    return first + size + b"\0\0\0\0" + data


async def message(wire: Wire) -> bytes:
    """The payload of the next frame of the server."""
    try:
        start = await wire.reader.readexactly(2)
        size = start[1]
        if size == 126:
            size = int.from_bytes(await wire.reader.readexactly(2), "big")
        elif size == 127:
            size = int.from_bytes(await wire.reader.readexactly(8), "big")
        data = await wire.reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise Closed("the socket was closed") from error
    if start[0] & 0x0F == 8:
        raise Closed(f"closed with {int.from_bytes(data[:2], 'big')}")
    return data
