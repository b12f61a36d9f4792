"""``python -m bench.realtime.delivery``: stores events as the reader of a chain does, at a rate.

Every event is a block of its own in a transaction of its own (``chain.indexing.head.commits``),
which numbers the outbox and notifies. Reads a line of JSON for each job, ``{"count", "rate",
"at_once"}``, and answers with one: when the transaction of each event began, in microseconds of the
monotonic clock, and how long they took. Events are numbered in ``tokenId``, from 1 on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

NETWORK = 31337
_ADDRESS = "0x" + "5f" * 20
_FROM, _TO = "0x" + "00" * 20, "0x" + "a1" * 20
_TABLES = "chain_contract_event, chain_outbox, chain_block, chain_cursor, chain_blockchain"


class Chain:
    """A simulated chain: any number of blocks, with Transfers in each."""

    def __init__(self) -> None:
        from django.db import connection

        from backend.kernel.principal import MASTER
        from chain.core.blocks.final_heights import Heights
        from chain.indexing.head import commits
        from chain.indexing.storage import cursors as position
        from objects import service

        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {_TABLES}")
        network: dict[str, Any] = {
            "networkId": NETWORK,
            "name": "Bench",
            "rpcEndpoint": "http://127.0.0.1:9",
        }
        service.create(MASTER, "Blockchain", network)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO chain_cursor (network_id) VALUES (%s) ON CONFLICT DO NOTHING",
                (NETWORK,),
            )
        at = position.read(NETWORK)
        assert at is not None
        commits.begin(at, self._header(0), 0, Heights(0, 0))
        at = position.read(NETWORK)
        assert at is not None
        self.at = at
        self.written = 0

    def write(self, count: int, rate: float, at_once: int) -> dict[str, Any]:
        """Store so many events, ``at_once`` in a block, ``rate`` a second."""
        from chain.indexing.head import commits
        from chain.indexing.head.fetches import Stretch

        began: list[int] = []
        took = 0.0
        due = time.monotonic()
        for _ in range(0, count, at_once):
            time.sleep(max(0.0, due - time.monotonic()))
            due += at_once / rate
            header = self._header(self.at.height + 1)
            rows = [self._event(header, index) for index in range(at_once)]
            now = time.monotonic_ns() // 1000
            self.at = commits.advance(self.at, Stretch([header], []), rows)
            took += time.monotonic() - now / 1e6
            began += [now] * at_once
            self.written += at_once
        first = self.written - len(began) + 1
        return {"first": first, "began": began, "took_ms": took / len(began) * at_once * 1000}

    def _header(self, number: int) -> Any:
        from chain.core.node import Header

        return Header(hex(number), _hash(number), _hash(number - 1), hex(1_790_000_000 + number))

    def _event(self, header: Any, index: int) -> Any:
        from chain.core.blocks.events import EventRow

        number = self.written + 1 + index
        args = json.dumps({"from": _FROM, "to": _TO, "tokenId": str(number)})
        sent = "0x" + f"{number:064x}"
        return EventRow(
            *("Gem", "Transfer", _ADDRESS, sent, header.height, header.hash, index, index, 0, args)
        )


def _hash(number: int) -> str:
    return "0x" + f"{(number + 1) * 7919:064x}"


def main() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")
    django.setup()
    chain = Chain()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(chain.write(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
