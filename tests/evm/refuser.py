"""A provider that refuses ``eth_getLogs`` by a sentence that nobody has read before."""

from __future__ import annotations

import json
import string
import threading
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.evm.proxy import HttpAnswer

CODES = (-32000, -32001, -32012, -32600, -32602, -32603, -32614, -32701, -32097, 35, 0, -1)
STATUSES = (400, 403, 404, 410, 422, 500, 502, 503)


def sentence(random: Random) -> str:
    """Words that no list knows."""
    words = range(random.randrange(1, 12))
    return " ".join(
        "".join(random.choices(string.ascii_lowercase, k=random.randrange(2, 9))) for _ in words
    )


@dataclass(frozen=True)
class Refusal:
    """An error, and how it comes: in its place in the answers, instead of all of them, or with a
    status of HTTP."""

    code: int
    message: str
    status: int = 200
    is_of_all: bool = False

    @classmethod
    def drawn(cls, random: Random) -> Refusal:
        code = random.choice((*CODES, random.randrange(-33_000, 1000)))
        if code == 429 or -32006 < code < -32004:  # these are understood
            code = -32000
        is_of_all = random.random() < 0.4
        status = random.choice(STATUSES) if is_of_all and random.random() < 0.7 else 200
        return cls(code, sentence(random), status, is_of_all)

    @property
    def error(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message}


class Refuser:
    """Hooks of a proxy: ``on_request(refuser.request)`` and ``on_reply(refuser.reply)``.

    A filter is refused if it has more blocks than ``most_blocks``, more contracts than
    ``most_contracts``, or a block below ``lowest``; with ``methods``, all calls of these are.
    """

    def __init__(
        self,
        refusal: Refusal,
        *,
        most_blocks: int | None = None,
        most_contracts: int | None = None,
        lowest: int = 0,
        methods: frozenset[str] = frozenset(),
    ) -> None:
        self.refusal = refusal
        self.most_blocks = most_blocks
        self.most_contracts = most_contracts
        self.lowest = lowest
        self.methods = methods
        self.refused = 0
        self._ids = threading.local()

    def __repr__(self) -> str:
        limits = (self.most_blocks, self.most_contracts, self.lowest, sorted(self.methods))
        return f"Refuser({self.refusal}, {limits})"

    def request(self, calls: list[dict[str, Any]]) -> None:
        ids = [call["id"] for call in calls if self._refuses(call)]
        self._ids.refused = ids
        self.refused += len(ids)
        if not ids or not self.refusal.is_of_all:
            return
        body = {"jsonrpc": "2.0", "id": None, "error": self.refusal.error}
        if len(calls) == 1:
            body["id"] = calls[0]["id"]
        raise HttpAnswer(self.refusal.status, json.dumps(body).encode())

    def reply(self, replies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        error = {"error": self.refusal.error}
        return [
            {"jsonrpc": "2.0", "id": reply["id"], **error}
            if reply["id"] in self._ids.refused
            else reply
            for reply in replies
        ]

    def _refuses(self, call: dict[str, Any]) -> bool:
        if call["method"] in self.methods:
            return True
        if call["method"] != "eth_getLogs":
            return False
        query = call["params"][0]
        most = self.most_contracts
        if most is not None and len(query.get("address", ())) > most:
            return True
        if "blockHash" in query:
            return False
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        if first < self.lowest:
            return True
        return self.most_blocks is not None and last - first + 1 > self.most_blocks
