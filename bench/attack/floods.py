"""More connections and more requests than a service has room for."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from bench.attack.attacks import Attack, Attacker
from bench.attack.scene import MOUNT, VICTIM
from bench.attack.wire import request


class IdleConnections(Attack):
    name = "idle connections"
    description = "2,000 connections that send nothing"
    attackers = 2_000
    p99 = 100.0
    short = True

    async def attack(self, attacker: Attacker) -> None:
        async with await attacker.connect() as wire:
            attacker.tally.count(await wire.receive())


class Hoarding(Attack):
    name = "keep-alive hoarding"
    description = "500 connections that ask for /health every five seconds"
    attackers = 500
    allowance = 128

    async def attack(self, attacker: Attacker) -> None:
        async with await attacker.connect() as wire:
            await asyncio.sleep(attacker.number % 50 / 10)
            while not attacker.is_over:
                answer = await attacker.exchange(wire, request("GET", "/health"))
                if answer.is_last:
                    return
                await asyncio.sleep(5)


class Pipelining(Attack):
    name = "pipelining"
    description = "100 requests sent at once on each of 20 connections, again and again"
    attackers = 20
    most = 1_000
    allowance = 128
    short = True

    async def attack(self, attacker: Attacker) -> None:
        one = request("GET", f"{MOUNT}/classes/{VICTIM}?limit=1", attacker.scene.client)
        async with await attacker.connect() as wire:
            await wire.send(one * 100)
            for _ in range(100):
                answer = attacker.tally.count(await wire.receive())
                if answer.is_last:
                    return


class FindFlood(Attack):
    name = "finds"
    description = "finds, one after the other on each of 50 connections"
    attackers = 50
    allowance = 128

    async def attack(self, attacker: Attacker) -> None:
        where = quote('{"title": {"$gte": "a"}}')
        path = f"{MOUNT}/classes/{VICTIM}?limit=20&where={where}"
        async with await attacker.connect() as wire:
            while not attacker.is_over:
                answer = await attacker.exchange(wire, request("GET", path, attacker.scene.client))
                if answer.is_last:
                    return


class CreateFlood(Attack):
    name = "creates"
    description = "creates, one after the other on each of 20 connections"
    attackers = 20
    allowance = 128

    async def attack(self, attacker: Attacker) -> None:
        data = request(
            "POST", f"{MOUNT}/classes/Flooded", attacker.scene.client, {"title": "a" * 500}
        )
        async with await attacker.connect() as wire:
            while not attacker.is_over:
                answer = await attacker.exchange(wire, data)
                if answer.is_last:
                    return


class ConnectionStorm(Attack):
    name = "connection storms"
    description = "connections that are reset at once, as fast as 64 clients open them"
    attackers = 64
    most = 200_000
    short = True

    async def attack(self, attacker: Attacker) -> None:
        await attacker.connect_and_reset()


class AbortStorm(Attack):
    name = "aborted requests"
    description = "finds whose connection is reset as soon as they are sent, by 64 clients"
    attackers = 64
    most = 200_000

    async def attack(self, attacker: Attacker) -> None:
        where = quote('{"title": {"$gte": "a"}}')
        path = f"{MOUNT}/classes/{VICTIM}?limit=20&where={where}"
        await attacker.connect_and_reset(request("GET", path, attacker.scene.client))


ATTACKS = (
    IdleConnections,
    Hoarding,
    Pipelining,
    FindFlood,
    CreateFlood,
    ConnectionStorm,
    AbortStorm,
)
