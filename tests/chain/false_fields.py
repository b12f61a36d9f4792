"""Single false fields in responses, which fit nothing else that the provider says."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

_ELSE = "0x" + "5a" * 32
# Another one than in blocks: what blocks and receipts say alike of the hashes of transactions isn't
# checked.
_OTHER = "0x" + "6b" * 32


class Twister:
    """Falsifies a share of the responses of a proxy: ``proxy.on_reply(twister.twist)``."""

    def __init__(self, random: Random) -> None:
        self.rate = 0.0
        self.twisted = 0
        self._random = Random(random.random())
        self._lock = threading.Lock()

    def twist(self, replies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        with self._lock:
            return [self._reply(reply) for reply in replies]

    def _reply(self, reply: dict[str, Any]) -> dict[str, Any]:
        result = reply.get("result")
        if not result or self._random.random() >= self.rate:
            return reply
        if isinstance(result, dict) and "parentHash" in result:
            false: Any = {**result, **self._random.choice(_BLOCKS)}
        elif isinstance(result, list) and "topics" in result[0]:
            at = self._random.randrange(len(result))
            false = [*result]
            false[at] = {**false[at], **self._random.choice(_LOGS)}
        elif isinstance(result, list) and "cumulativeGasUsed" in result[0]:
            at = self._random.randrange(len(result))
            false = [*result]
            false[at] = {**false[at], **self._random.choice(_RECEIPTS)}
            false = self._random.choice([None, false, false[:at], false[::-1], [*false, *false]])
        else:
            return reply
        self.twisted += 1
        return {**reply, "result": false}


_BLOCKS: list[dict[str, Any]] = [
    {"timestamp": "0x77"},
    {"transactions": []},
    {"transactions": [_ELSE]},
    {"receiptsRoot": _ELSE},
    {"receiptsRoot": None},
    {"logsBloom": "0x" + "00" * 256},
    {"number": "0x3"},
    {"number": "0xfffffff"},
    {"hash": _ELSE},
    {"parentHash": _ELSE},
    {"timestamp": None},
]
_LOGS: list[dict[str, Any]] = [
    {"topics": ["0x12"]},
    {"topics": []},
    {"address": "0x00"},
    {"address": "0x" + "5a" * 20},
    {"data": "0x1"},
    {"data": "words"},
    {"logIndex": "words"},
    {"logIndex": "0x50"},
    {"logIndex": "-0x1"},
    {"removed": True},
    {"blockTimestamp": "0x77"},
    {"transactionHash": _ELSE},
    {"transactionIndex": "0x9"},
    {"blockHash": _ELSE},
    {"blockNumber": "0x1"},
]
_RECEIPTS: list[dict[str, Any]] = [
    {"logs": []},
    {"logs": None},
    {"transactionHash": _OTHER},
    {"blockHash": _ELSE},
    {"cumulativeGasUsed": "0x1"},
    {"status": "0x0"},
    {"type": "0x7e"},
    {},
]
