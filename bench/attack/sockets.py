"""Floods of WebSocket handshakes, connections, subscriptions and frames."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

from bench.attack.attacks import Attack, Attacker
from bench.attack.frames import UPGRADE, frame, message
from bench.attack.scene import CORPUS, VICTIM
from bench.attack.wire import Closed, Wire, head


class _Sockets(Attack):
    path: ClassVar[str] = "/ws"
    allowance = 128

    async def open(self, attacker: Attacker, receive_buffer: int | None = None) -> Wire:
        """A socket after its handshake; raises ``Closed`` if it is refused."""
        wire = await attacker.connect(receive_buffer)
        try:
            answer = await attacker.exchange(wire, head("GET", self.path, UPGRADE))
        except BaseException:
            wire.close()
            raise
        if answer.status != 101:
            wire.close()
            raise Closed("the handshake was refused")
        return wire

    async def wait(self, wire: Wire) -> None:
        """Read until the server closes the socket."""
        while True:
            await message(wire)


class Handshakes(_Sockets):
    name = "socket handshakes"
    description = "/ws opened and closed, again and again"
    attackers = 32
    most = 10_000
    short = True

    async def attack(self, attacker: Attacker) -> None:
        (await self.open(attacker)).close()


class IdleSockets(_Sockets):
    name = "idle sockets"
    description = "2,000 sockets at /livequery that send nothing"
    path = "/livequery"
    attackers = 2_000
    p99 = 100.0

    async def attack(self, attacker: Attacker) -> None:
        # Spread over two seconds: this is about holding, the row above about opening.
        await asyncio.sleep(attacker.number % 100 / 50)
        async with await self.open(attacker) as wire:
            await self.wait(wire)


class SlowHandshakes(_Sockets):
    name = "slow handshakes"
    description = "a handshake of /ws whose headers come a byte a second"
    attackers = 200
    p99 = 100.0

    async def attack(self, attacker: Attacker) -> None:
        start = head("GET", self.path, UPGRADE, end=False)
        async with await attacker.connect() as wire:
            await attacker.drip(wire, start, b"X-Note: " + b"a" * 4_000)


class SlowFrames(_Sockets):
    name = "slow frames"
    description = "a message at /livequery in fragments of a byte a second"
    path = "/livequery"
    attackers = 200
    p99 = 100.0

    async def attack(self, attacker: Attacker) -> None:
        async with await self.open(attacker) as wire:
            await wire.send(frame("{", is_final=False))
            while not attacker.is_over:
                await wire.send(frame("a", opcode=0, is_final=False))
                await asyncio.sleep(1)


class JunkFrames(_Sockets):
    name = "junk frames"
    description = "frames of 64 KB that make no sense"
    path = "/livequery"
    attackers = 16
    most = 5_000

    async def attack(self, attacker: Attacker) -> None:
        data = frame(json.dumps({"op": "connect", "junk": "a" * 65_000}))
        async with await self.open(attacker) as wire:
            reading = asyncio.ensure_future(self.wait(wire))
            try:
                while not attacker.is_over and not reading.done():
                    await wire.send(data)
                    await asyncio.sleep(0.01)
                if reading.done():
                    reading.result()
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)


class Subscriptions(_Sockets):
    name = "heavy subscriptions"
    description = "50 live queries with a regex on each of 40 sockets, on the class that is written"
    path = "/livequery"
    attackers = 40
    p99 = 250.0
    allowance = 256
    short = True
    reads: ClassVar[bool] = True

    def wheres(self, attacker: Attacker) -> list[dict[str, Any]]:
        def where(number: int) -> dict[str, Any]:
            patterns = (f"(a|b).*{n}x{number}x{attacker.number}" for n in range(10))
            return {"$or": [{"title": {"$regex": pattern}} for pattern in patterns]}

        return [where(number) for number in range(50)]

    async def attack(self, attacker: Attacker) -> None:
        scene = attacker.scene
        async with await self.open(attacker, None if self.reads else 4096) as wire:
            connect = {"op": "connect", "applicationId": scene.application, "restAPIKey": scene.key}
            await wire.send(frame(json.dumps(connect)))
            await message(wire)
            for number, where in enumerate(self.wheres(attacker)):
                query = {"className": VICTIM, "where": where}
                subscribe = {"op": "subscribe", "requestId": number, "query": query}
                await wire.send(frame(json.dumps(subscribe)))
                answer = json.loads(await message(wire))
                attacker.tally.answers[answer.get("op", "?")] += 1
            if self.reads:
                await self.wait(wire)
            while not attacker.is_over:
                await asyncio.sleep(0.5)


class DeafSubscribers(Subscriptions):
    name = "subscribers that don't read"
    description = "50 live queries that match each write, on each of 40 sockets that read nothing"
    reads = False
    short = False

    def wheres(self, attacker: Attacker) -> list[dict[str, Any]]:
        return [{"title": {"$ne": f"{number}"}} for number in range(50)]


class SocketQueries(_Sockets):
    name = "queries over sockets"
    description = "subscription.find() of a heavy query, again and again"
    path = "/livequery"
    attackers = 16
    most = 1_000
    allowance = 256

    async def attack(self, attacker: Attacker) -> None:
        scene = attacker.scene
        async with await self.open(attacker) as wire:
            connect = {"op": "connect", "applicationId": scene.application, "restAPIKey": scene.key}
            where = {"$or": [{"text": {"$regex": f"(a|e).*{n}.*q"}} for n in range(60)]}
            query = {"className": CORPUS, "where": where}
            await wire.send(frame(json.dumps(connect)))
            await message(wire)
            await wire.send(frame(json.dumps({"op": "subscribe", "requestId": 1, "query": query})))
            await message(wire)
            while not attacker.is_over:
                await wire.send(frame(json.dumps({"op": "query", "requestId": 1})))
                answer = json.loads(await message(wire))
                attacker.tally.answers[answer.get("op", "?")] += 1


ATTACKS = (
    Handshakes,
    IdleSockets,
    SlowHandshakes,
    SlowFrames,
    JunkFrames,
    Subscriptions,
    DeafSubscribers,
    SocketQueries,
)
