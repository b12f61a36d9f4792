"""Guesses at a password, and accounts by the thousand."""

from __future__ import annotations

import asyncio
import itertools

from bench.attack.attacks import Attack, Attacker
from bench.attack.scene import MOUNT, VICTIM_ADDRESS, Scene
from bench.attack.wire import Closed, Wire, request

_names = itertools.count()


class LoginGuesses(Attack):
    name = "login guesses"
    description = "guesses at the victim's password; the victim then logs in with the right one"
    attackers = 32
    most = 5_000
    allowance = 128
    short = True

    async def attack(self, attacker: Attacker) -> None:
        body = {"username": attacker.scene.username, "password": f"guess {next(_names)}"}
        async with await attacker.connect() as wire:
            await attacker.exchange(
                wire, request("POST", f"{MOUNT}/login", attacker.scene.client, body)
            )

    async def verify(self, scene: Scene) -> list[str]:
        body = {"username": scene.username, "password": scene.password}
        try:
            async with await Wire.open(scene, VICTIM_ADDRESS) as wire:
                answer = await wire.exchange(
                    request("POST", f"{MOUNT}/login", scene.client, body), patience=30
                )
        except (Closed, OSError, asyncio.IncompleteReadError) as error:
            return [f"the victim can't log in: {error or type(error).__name__}"]
        return [] if answer.status == 200 else [f"the victim's login answers {answer.status}"]


class SignUps(Attack):
    name = "sign-ups"
    description = "new accounts, as fast as they are answered"
    attackers = 32
    most = 5_000
    allowance = 128

    async def attack(self, attacker: Attacker) -> None:
        body = {"username": f"flood {next(_names)}", "password": "a password of the flood"}
        async with await attacker.connect() as wire:
            await attacker.exchange(
                wire, request("POST", f"{MOUNT}/users", attacker.scene.client, body)
            )


class ResetMails(Attack):
    name = "password resets"
    description = "requests of an email to the victim and to addresses without an account"
    attackers = 16
    most = 5_000
    allowance = 128

    async def attack(self, attacker: Attacker) -> None:
        body = {"email": f"flood{next(_names)}@example.org"}
        async with await attacker.connect() as wire:
            path = f"{MOUNT}/requestPasswordReset"
            await attacker.exchange(wire, request("POST", path, attacker.scene.client, body))


ATTACKS = (LoginGuesses, SignUps, ResetMails)
