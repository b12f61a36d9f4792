"""Networks whose events are stored and published as the indexer does it, without a node."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import uuid4

from django.db import transaction

from chain.core.blocks.events import EventRow
from chain.indexing.storage import outbox_reader
from chain.indexing.storage.events import remove_events, store_events
from chain.models.indexing import OutboxEpoch
from objects.database.statements import fetch
from tests.realtime.livequery.committed import Aside

GEM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
COIN = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
ANN = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"
NOBODY = "0x0000000000000000000000000000000000000000"

_numbers = count(700_001)


class Chain:
    """One network. Events are named by their token, which identifies their transaction too."""

    def __init__(self, aside: Aside) -> None:
        self.network_id = next(_numbers)
        self.notifies = True
        self._aside = aside
        self._do(
            "INSERT INTO chain_cursor (network_id, number, hash) VALUES (%s, 0, '0x') RETURNING 1",
            self.network_id,
        )

    def add(self, *tokens: int, block: int, fork: str = "a", **changed: Any) -> None:
        """Store events and their notification in one transaction."""
        rows = [
            self.row(token, block, index, fork, **changed) for index, token in enumerate(tokens)
        ]
        self.commit(rows)

    def commit(self, rows: list[EventRow]) -> None:
        """Store these rows and their notification in one transaction."""
        self.write(lambda seq: store_events(self.network_id, rows, after_seq=seq))

    def add_history(self, *tokens: int, block: int) -> None:
        """Store events that aren't published."""
        rows = [self.row(token, block, index, "a") for index, token in enumerate(tokens)]
        self._aside.do(lambda: store_events(self.network_id, rows, after_seq=None))

    def remove(self, above: int) -> None:
        """Take the blocks above this one out of the chain."""
        self.write(lambda seq: remove_events(self.network_id, above, after_seq=seq))

    def reach(self, number: int, safe: int, finalized: int) -> None:
        """The network is read up to ``number``; no process is woken up by that."""
        self._do(
            "UPDATE chain_cursor SET number = %s, safe = %s, finalized = %s WHERE network_id = %s"
            " RETURNING 1",
            *(number, safe, finalized, self.network_id),
        )

    def prune(self, up_to: int) -> None:
        """Rows of the outbox that are too old go."""
        self._do(
            "DELETE FROM chain_outbox WHERE network_id = %s AND seq <= %s RETURNING 1",
            *(self.network_id, up_to),
        )

    @property
    def newest(self) -> int:
        [(number,)] = self._do(
            "SELECT outbox FROM chain_cursor WHERE network_id = %s", self.network_id
        )
        return int(number)

    def hang_up(self, pid: int) -> None:
        """As if PostgreSQL had lost a connection."""
        self._do("SELECT pg_terminate_backend(%s)", pid)

    def restored(self) -> None:
        """As if a backup had been restored, in one transaction: the channel may look at any time.

        The row is missing where an earlier test emptied every table.
        """

        def another() -> None:
            with transaction.atomic():
                OutboxEpoch.objects.all().delete()
                OutboxEpoch.objects.create(value=uuid4())

        self._aside.do(another)

    def rows(self, sql: str) -> list[Any]:
        """What a statement about the network finds."""
        return self._do(sql, self.network_id)

    def row(self, token: int, block: int, index: int, fork: str, **changed: Any) -> EventRow:
        values: dict[str, Any] = {
            "contract_name": "Gem",
            "event_name": "Transfer",
            "address": GEM,
            "transaction_hash": f"0x{self.network_id:08x}{token:056x}",
            "block_number": block,
            "block_hash": f"0x{fork}{block:063x}",
            "log_index": index,
            "transaction_index": index,
            "ordinal": 0,
            "args": {"from": NOBODY, "to": ANN, "tokenId": str(token)},
        } | changed
        values["args"] = json.dumps(values["args"])
        return EventRow(**values)

    def _do(self, sql: str, *params: Any) -> list[Any]:
        return self._aside.do(lambda: fetch(sql, params, prepare=False))

    def write(self, write: Callable[[int], int]) -> None:
        """Do something in one transaction that adds so many rows to the outbox_reader."""

        def committed() -> None:
            with transaction.atomic():
                [(seq,)] = fetch(
                    "SELECT outbox FROM chain_cursor WHERE network_id = %s FOR UPDATE",
                    (self.network_id,),
                    prepare=False,
                )
                more = write(int(seq))
                fetch(
                    "UPDATE chain_cursor SET outbox = outbox + %s WHERE network_id = %s",
                    (more, self.network_id),
                    prepare=False,
                )
                if self.notifies:
                    note = f"{self.network_id} {int(seq) + more}"
                    fetch("SELECT pg_notify(%s, %s)", (outbox_reader.CHANNEL, note), prepare=False)

        self._aside.do(committed)
