"""Queries of clients that cost more than they say."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import urlencode

from bench.attack.attacks import Attack, Attacker
from bench.attack.scene import CORPUS, MOUNT
from bench.attack.wire import request

Where = dict[str, Any]

PATTERNS = (
    "((a?){10}){100}",
    "((a{1,9}){1,9}){1,9}",
    "(a|b|ab)*c(x?){200}",
    "(a+)+$",
    "([a-z]{1,100}){1,100}",
    "(.*a){25}",
    "[\\w\\d\\s]{1,200}x{1,200}",
    "((((a*)*)*)*)*b",
)


class _Queries(Attack):
    """Finds of the class of long texts, one after the other on each connection."""

    attackers = 16
    most = 20_000
    allowance = 256
    options: ClassVar[dict[str, Any]] = {"limit": 100}

    def wheres(self) -> Iterator[Where]:
        """The queries, again and again, no two of them the same."""
        raise NotImplementedError

    async def attack(self, attacker: Attacker) -> None:
        async with await attacker.connect() as wire:
            for where in itertools.islice(self.wheres(), attacker.number, None, self.attackers):
                if attacker.is_over:
                    return
                # In a body, as SDKs send what is too long for a URL.
                body = {"_method": "GET", "where": where, **self.options}
                data = request("POST", f"{MOUNT}/classes/{CORPUS}", attacker.scene.client, body)
                if (await attacker.exchange(wire, data)).is_last:
                    return


class Regexes(_Queries):
    name = "regexes"
    description = "short patterns that are large automata, each one different"
    short = True

    def wheres(self) -> Iterator[Where]:
        for number in itertools.count():
            yield {"text": {"$regex": f"{PATTERNS[number % len(PATTERNS)]}|q{number}"}}


class ManyRegexes(_Queries):
    name = "$or of 240 regexes"
    description = "240 patterns, each of which every text is compared with"

    def wheres(self) -> Iterator[Where]:
        for number in itertools.count():
            yield {"$or": [{"text": {"$regex": f"(a|e).*{n}.*x{number}q"}} for n in range(240)]}


class NestedQueries(_Queries):
    name = "nested sub-queries"
    description = "$inQuery, $select and $dontSelect inside of each other over the whole class"
    short = True

    def wheres(self) -> Iterator[Where]:
        for number in itertools.count():
            where: Where = {"number": {"$gte": -number}}
            for level in range(5):
                query = {"className": CORPUS, "where": where}
                if level % 2:
                    where = {"next": {"$inQuery": query}}
                else:
                    operator = "$select" if level else "$dontSelect"
                    where = {"word": {operator: {"query": query, "key": "word"}}}
            yield where


class Sorts(_Queries):
    name = "sorts and counts"
    description = "an order without an index over the whole class, a large skip, and a count"
    options: ClassVar[dict[str, Any]] = {
        "limit": 100,
        "skip": 9_000,
        "count": 1,
        "order": "text,-word",
    }

    def wheres(self) -> Iterator[Where]:
        for number in itertools.count():
            yield {"text": {"$ne": f"q{number}"}}


class LongLists(_Queries):
    name = "long lists"
    description = "$in with 5,000 texts and $containedBy with as many"

    def wheres(self) -> Iterator[Where]:
        words = [f"word{number}" for number in range(5_000)]
        for number in itertools.count():
            yield {"word": {"$nin": [*words[1:], f"q{number}"]}, "tags": {"$containedBy": words}}


class ExpensiveBatches(Attack):
    name = "batches of finds"
    description = "50 finds with a regex in one batch"
    attackers = 8
    most = 500
    allowance = 256

    async def attack(self, attacker: Attacker) -> None:
        items = []
        for number in range(50):
            where = json.dumps({"text": {"$regex": f"(a|e).*{number}.*q{attacker.row.attempts}"}})
            path = f"{MOUNT}/classes/{CORPUS}?{urlencode({'where': where})}"
            items.append({"method": "GET", "path": path})
        async with await attacker.connect() as wire:
            data = request("POST", f"{MOUNT}/batch", attacker.scene.client, {"requests": items})
            await attacker.exchange(wire, data)


class FieldFlood(Attack):
    name = "field floods"
    description = "creates that each name 100 new fields"
    attackers = 8
    most = 400
    allowance = 128
    short = True

    async def attack(self, attacker: Attacker) -> None:
        first = attacker.row.attempts * 100
        body = {f"field{first + number}": number for number in range(100)}
        async with await attacker.connect() as wire:
            path = f"{MOUNT}/classes/Flooded{attacker.number}"
            await attacker.exchange(wire, request("POST", path, attacker.scene.client, body))


ATTACKS = (
    Regexes,
    ManyRegexes,
    NestedQueries,
    Sorts,
    LongLists,
    ExpensiveBatches,
    FieldFlood,
)
