"""Clients that send or read slowly, to hold what serves a connection."""

from __future__ import annotations

import asyncio
import contextlib

from bench.attack.attacks import Attack, Attacker
from bench.attack.scene import HEAVY, MOUNT, VICTIM
from bench.attack.wire import Wire, chunk, head, request

_BODY = b'{"title": "' + b"a" * 4_000


class _Slow(Attack):
    attackers = 200
    p99 = 100.0


class SlowHeaders(_Slow):
    name = "slow headers"
    description = "a byte of a header a second"
    short = True

    async def attack(self, attacker: Attacker) -> None:
        start = head("GET", f"{MOUNT}/classes/{VICTIM}", attacker.scene.client, end=False)
        async with await attacker.connect() as wire:
            await attacker.drip(wire, start, b"X-Note: " + b"a" * 4_000)


class SlowBodies(_Slow):
    name = "slow bodies"
    description = "a create with Content-Length whose body comes a byte a second"
    short = True

    async def attack(self, attacker: Attacker) -> None:
        headers = attacker.scene.client | {
            "Content-Type": "application/json",
            "Content-Length": "100000",
        }
        async with await attacker.connect() as wire:
            await attacker.drip(wire, head("POST", f"{MOUNT}/classes/{VICTIM}", headers), _BODY)


class SlowChunks(_Slow):
    name = "slow chunks"
    description = "a create with a chunked body, a chunk of one byte a second"

    async def attack(self, attacker: Attacker) -> None:
        headers = attacker.scene.client | {
            "Content-Type": "application/json",
            "Transfer-Encoding": "chunked",
        }
        async with await attacker.connect() as wire:
            start = head("POST", f"{MOUNT}/classes/{VICTIM}", headers)
            await attacker.drip(wire, start, b"".join(chunk(b"%c" % value) for value in _BODY))


class SlowUploads(_Slow):
    name = "slow uploads"
    description = "an upload of 1 MB to /files by a user, a byte a second"

    async def attack(self, attacker: Attacker) -> None:
        headers = attacker.scene.user | {
            "Content-Type": "text/plain",
            "Content-Length": "1000000",
        }
        async with await attacker.connect() as wire:
            await attacker.drip(wire, head("POST", f"{MOUNT}/files/a.txt", headers), b"a" * 4_000)


async def _read_slowly(attacker: Attacker, wire: Wire) -> None:
    """Read a kilobyte a second; the status counts as soon as it has come."""
    start = await wire.reader.readuntil(b"\r\n")
    attacker.tally.answers[start.split(b" ", 2)[1].decode()] += 1
    while not attacker.is_over:
        if not await wire.reader.read(1024):
            return
        await asyncio.sleep(1)


class SlowFileReaders(_Slow):
    name = "slow readers of a file"
    description = "a file of 20 MB, read at 1 KB a second"
    allowance = 256
    short = True

    async def attack(self, attacker: Attacker) -> None:
        async with await attacker.connect(receive_buffer=4096) as wire:
            await wire.send(request("GET", attacker.scene.file, attacker.scene.client))
            await _read_slowly(attacker, wire)


class SlowFindReaders(_Slow):
    name = "slow readers of a find"
    description = "a find that answers 5 MB, read at 1 KB a second"
    attackers = 50
    allowance = 512

    async def attack(self, attacker: Attacker) -> None:
        async with await attacker.connect(receive_buffer=4096) as wire:
            await wire.send(request("GET", f"{MOUNT}/classes/{HEAVY}", attacker.scene.client))
            with contextlib.suppress(asyncio.IncompleteReadError):
                await _read_slowly(attacker, wire)


ATTACKS = (SlowHeaders, SlowBodies, SlowChunks, SlowUploads, SlowFileReaders, SlowFindReaders)
