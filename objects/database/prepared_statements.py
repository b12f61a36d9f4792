"""The statements that a connection keeps prepared: parsed once, and mostly planned once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from psycopg import pq

MOST_PREPARED: Final = 500
"""Statements of one connection; the one that was not used for longest makes room."""
SLOW: Final = 0.05
"""Seconds after which a statement may have an outdated plan. PostgreSQL keeps a plan until it has
new statistics of the table, which takes a minute or more: one that was made for a few rows would
be used for a million by then. Waiting for locks and for rows counts as well."""
PLAN_AGE: Final = 10.0
"""Seconds between two preparations of a slow statement, at least."""


@dataclass(slots=True)
class _Prepared:
    name: bytes
    prepared_at: float
    needs_plan: bool = False


class PreparedStatements:
    """The names of one connection's prepared statements. ``check`` raises a result's error."""

    def __init__(
        self, pgconn: pq.abc.PGconn, check: Callable[[pq.abc.PGresult], pq.abc.PGresult]
    ) -> None:
        self._pgconn = pgconn
        self._check = check
        self._kept: OrderedDict[bytes, _Prepared] = OrderedDict()  # by last use
        self._last_number = 0

    def name_of(self, sql: bytes) -> bytes:
        """Return the name of a statement, after preparing it if that is necessary.

        Raises psycopg's errors.
        """
        prepared = self._kept.get(sql)
        if prepared is not None and not (prepared.needs_plan and self._may_deallocate):
            self._kept.move_to_end(sql)
            return prepared.name
        if prepared is not None:
            self.forget(sql)
        elif len(self._kept) >= MOST_PREPARED and self._may_deallocate:
            self.forget(next(iter(self._kept)))
        self._last_number += 1
        name = b"store_%d" % self._last_number
        self._check(self._pgconn.prepare(name, sql))
        self._kept[sql] = _Prepared(name, monotonic())
        return name

    def plan_again(self, sql: bytes) -> None:
        """Have a slow statement planned again at its next use, if its plan is old.

        Sends nothing.
        """
        prepared = self._kept.get(sql)
        if prepared is not None and monotonic() - prepared.prepared_at > PLAN_AGE:
            prepared.needs_plan = True

    @property
    def _may_deallocate(self) -> bool:
        """Whether no transaction was aborted: in one, the server refuses everything."""
        return self._pgconn.transaction_status != pq.TransactionStatus.INERROR

    def forget(self, sql: bytes) -> None:
        """Deallocate a statement; its next use prepares it again.

        Raises psycopg's errors; in that case the server keeps the statement until the connection is
        closed.
        """
        # Removed first: a name that was deallocated, and still stood here, would end in an error
        # at every later use. This thread may be interrupted at any point (``TimeIsUp``).
        self._check(self._pgconn.exec_(b"DEALLOCATE " + self._kept.pop(sql).name))
