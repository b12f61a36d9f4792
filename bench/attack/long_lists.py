"""Objects with long lists: small writes of them cost as much as the whole object."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

from bench.attack.attacks import Attack, Attacker
from bench.attack.frames import UPGRADE, frame, message
from bench.attack.scene import MOUNT
from bench.attack.wire import Wire, head, request

CLASS = "Flooded"
_STEP = 90_000
"""Numbers of a body of less than 1 MB."""


class LongObjects(Attack):
    name = "objects with long lists"
    description = "lists of numbers that bodies below 1 MB grow, and counters of these objects"
    attackers = 4
    most = 200
    allowance = 256
    short = True

    def __init__(self) -> None:
        self._objects: dict[int, str] = {}

    async def attack(self, attacker: Attacker) -> None:
        async with await attacker.connect() as wire:
            await self.grow(attacker, wire)

    async def grow(self, attacker: Attacker, wire: Wire) -> None:
        """Grow the attacker's list four times, then change it and a counter in batches."""
        if attacker.number not in self._objects:
            fields = {"count": 0, f"list{attacker.number}": []}
            created = await self._send(attacker, wire, "POST", f"/classes/{CLASS}", fields)
            self._objects[attacker.number] = created["objectId"]
        path = f"/classes/{CLASS}/{self._objects[attacker.number]}"
        field = f"list{attacker.number}"
        for step in range(4):
            numbers = list(range(step * _STEP, (step + 1) * _STEP))
            add = {"__op": "Add", "objects": [1_000_000 + number for number in numbers]}
            await self._send(attacker, wire, "PUT", path, {field: add})
        add_one = {"__op": "AddUnique", "objects": [attacker.row.attempts]}
        increment = {"__op": "Increment", "amount": 1}
        for body in ({field: add_one}, {"count": increment}):
            item = {"method": "PUT", "path": f"{MOUNT}{path}", "body": body}
            await self._send(attacker, wire, "POST", "/batch", {"requests": [item] * 10})

    async def _send(
        self, attacker: Attacker, wire: Wire, method: str, path: str, body: dict[str, Any]
    ) -> dict[str, Any]:
        data = request(method, f"{MOUNT}{path}", attacker.scene.client, body)
        answer = (await attacker.exchange(wire, data)).json
        return answer if isinstance(answer, dict) else {}


class LongObjectsLive(LongObjects):
    name = "live queries of long lists"
    description = "the same by one address with three subscriptions to its class; victim listens"
    attackers = 2
    events_p99: ClassVar[float] = 100.0

    async def attack(self, attacker: Attacker) -> None:
        scene = attacker.scene
        connect = {"op": "connect", "applicationId": scene.application, "restAPIKey": scene.key}
        async with await attacker.connect() as wire, await attacker.connect() as socket:
            await attacker.exchange(socket, head("GET", "/livequery", UPGRADE))
            await socket.send(frame(json.dumps(connect)))
            for number in range(3):
                query = {"className": CLASS, "where": {"count": {"$gte": -number}}}
                subscribe = {"op": "subscribe", "requestId": number, "query": query}
                await socket.send(frame(json.dumps(subscribe)))
            reading = asyncio.ensure_future(_read(socket))
            try:
                await self.grow(attacker, wire)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)


async def _read(wire: Wire) -> None:
    while True:
        await message(wire)


ATTACKS = (LongObjects, LongObjectsLive)
