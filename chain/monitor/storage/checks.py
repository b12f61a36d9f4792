"""Statements of the checks: what is due, and what they have found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from chain.core.columns import Column, Columns
from chain.core.transactions.sightings import Sighting
from chain.core.transactions.states import Record
from chain.models.stored import TRANSACTION, TransactionRow, moment
from chain.monitor.storage.rows import TOUCHED, Followed, late_json, select_transactions
from objects.database.statements import fetch, fetch_rows, fetch_values

MOST: Final = 1000
"""Transactions that one check takes."""

_CLOCK: Final = f"COALESCE({moment('%(now)s')}, statement_timestamp())"
_DUE: Final = f"""
{select_transactions(_CLOCK)}
 WHERE t.network_id = %(network)s AND t.next_check_at <= {_CLOCK}
 ORDER BY t.next_check_at LIMIT {MOST}
"""


def due_transactions(network_id: int, now: int | None) -> list[TransactionRow]:
    """Return the transactions of a network whose check is due, ``MOST`` at most, oldest first.

    ``now`` is milliseconds, None for the database's clock.
    """
    params = {"network": str(network_id), "now": now}
    return fetch_rows(TransactionRow, _DUE, params, prepare=True)


_NOTHING: Final = Sighting()


def _held(columns: Columns, *, unless_changed: bool = False) -> str:
    """SQL for the rows that these columns of parameters are about, locked in their order; or only
    for those whose check is due when it was. ``v`` has the columns."""
    condition = " WHERE h.next_check_at = v.was" if unless_changed else ""
    return (
        f"v AS MATERIALIZED (SELECT v.* FROM {columns.unnest('v')}"
        f" JOIN chain_transaction h USING (object_id){condition}"
        " ORDER BY v.object_id FOR UPDATE OF h)"
    )


_OBJECT_ID: Final = Column("object_id", "text")
_WAS: Final = Column("was", "timestamptz")
_SIGHTING: Final = Columns(
    (
        Column("nonce", "bigint"),
        Column("from_address", "text"),
        Column("to", "text"),
        Column("missing_since", "bigint"),
        Column("missing_checks", "int"),
        Column("suspected", "boolean"),
    )
)
"""The fields of ``Sighting``."""
_CHECK: Final = Columns(
    (
        Column("status", "text"),
        Column("attempts", "int"),
        Column("last_checked", "bigint"),
        Column("due_at", "bigint"),
    )
)
"""The fields of ``Record`` that a check without an answer changes."""
_FOUND: Final = TRANSACTION.updated
"""What a check that has found something stores."""


def _as_parameter(column: Column) -> Column:
    """Moments are milliseconds, JSON is text."""
    kind = {"timestamptz": "bigint", "jsonb": "text"}.get(column.sql_type, column.sql_type)
    return column._replace(sql_type=kind)


_IS_SHOWN: Final = Column("is_shown", "boolean")
_WRITTEN: Final = Columns((_OBJECT_ID, _WAS, *map(_as_parameter, _FOUND), _IS_SHOWN))
_MISSED: Final = _held(
    Columns((_OBJECT_ID, _WAS, *_CHECK, Column("is_seen", "boolean"), *_SIGHTING)),
    unless_changed=True,
)
_PAUSED: Final = _held(Columns((_OBJECT_ID, _WAS, Column("due_at", "bigint"))), unless_changed=True)
_SIGHTED: Final = _held(Columns((_OBJECT_ID, *_SIGHTING)))


_SEEN: Final = ", ".join(
    f"{column} = CASE WHEN v.is_seen THEN {value} ELSE t.{column} END"
    for column, value in (
        ("nonce", "v.nonce"),
        ("from_address", "v.from_address"),
        ('"to"', 'v."to"'),
        ("missing_since", moment("v.missing_since")),
        ("missing_checks", "v.missing_checks"),
    )
)


def write_missed(rows: Sequence[tuple[Followed, Record, Sighting | None]]) -> int:
    """Store checks that have found nothing for pending transactions, with what nodes have said of
    them if that is new, unless something has come between; how many are stored."""
    if not rows:
        return 0
    [count] = fetch_values(
        int,
        f"WITH {_MISSED}, done AS (UPDATE chain_transaction t SET status = v.status,"
        f" attempts = v.attempts, last_checked = {moment('v.last_checked')},"
        f" next_check_at = {moment('v.due_at')}, failed_checks = 0, {_SEEN}, replaced_suspected ="
        " CASE WHEN v.is_seen AND t.replaced_suspected THEN v.suspected"
        f" ELSE t.replaced_suspected END, updated_at = {TOUCHED}"
        " FROM v WHERE t.object_id = v.object_id RETURNING 1) SELECT count(*) FROM done",
        {
            **_keys([row for row, _, _ in rows]),
            **_CHECK.parameters([new for _, new, _ in rows]),
            "is_seen": [sighting is not None for _, _, sighting in rows],
            **_SIGHTING.parameters([sighting or _NOTHING for _, _, sighting in rows]),
        },
        prepare=True,
    )
    return count


def _keys(rows: Sequence[Followed]) -> dict[str, list[Any]]:
    """Which rows, and when their checks were due."""
    return {"object_id": [row.object_id for row in rows], "was": [row.due for row in rows]}


def write_pauses(rows: Iterable[tuple[Followed, int]]) -> None:
    """Check these again at these moments, since no node has answered; unless something has come
    between."""
    paused = [*rows]
    fetch(
        f"WITH {_PAUSED} UPDATE chain_transaction t SET failed_checks = t.failed_checks + 1,"
        f" next_check_at = {moment('v.due_at')}"
        " FROM v WHERE t.object_id = v.object_id",
        {**_keys([row for row, _ in paused]), "due_at": [due for _, due in paused]},
        prepare=True,
    )


def _stored(column: Column, value: str) -> str:
    """Convert a value of ``_as_parameter``."""
    if column.sql_type == "timestamptz":
        return moment(value)
    return f"{value}::jsonb" if column.sql_type == "jsonb" else value


# What a transaction is stays known when its block is gone.
_ASSIGNMENTS: Final = _FOUND.assignments("v", "t", _stored)


def write(rows: Sequence[tuple[Followed, Record]], *, unless_changed: bool = False) -> int:
    """Store these records. Return how many still existed."""
    if not rows:
        return 0
    held = _held(_WRITTEN, unless_changed=unless_changed)
    [count] = fetch_values(
        int,
        f"WITH {held}, done AS (UPDATE chain_transaction t SET {_ASSIGNMENTS},"
        " failed_checks = 0, missing_checks = 0,"
        " missing_since = NULL, replaced_suspected ="
        " CASE WHEN t.replaced_suspected AND v.is_shown THEN false ELSE t.replaced_suspected END,"
        f" updated_at = CASE WHEN v.is_shown THEN {TOUCHED} ELSE t.updated_at END"
        " FROM v WHERE t.object_id = v.object_id RETURNING 1)"
        " SELECT count(*) FROM done",
        _WRITTEN.parameters([_Written.of(row, new) for row, new in rows]),
        prepare=True,
    )
    return count


class _Written(msgspec.Struct, frozen=True, gc=False):
    """The values of ``_WRITTEN``. ``is_shown`` says whether clients see a difference."""

    object_id: str
    was: str | None
    status: str
    finality: str | None
    reorg_count: int | None
    pending_since: int | None
    late_receipt: str | None
    next_check_at: int | None
    is_shown: bool
    block_number: int | None = None
    gas_used: str | None = None
    effective_gas_price: str | None = None
    block_hash: str | None = None
    transaction_index: int | None = None
    from_address: str | None = None
    to: str | None = None

    @classmethod
    def of(cls, row: Followed, new: Record) -> _Written:
        old, mined, late = row.record, new.mined, late_json(new.late)
        is_shown = late != late_json(old.late) or (
            (old.status, old.mined, old.finality, old.reorg_count, old.pending_since)
            != (new.status, mined, new.finality, new.reorg_count, new.pending_since)
        )
        written = cls(
            object_id=row.object_id,
            was=row.due,
            status=new.status,
            finality=new.finality,
            reorg_count=new.reorg_count or None,
            pending_since=new.pending_since,
            late_receipt=late,
            next_check_at=new.due_at,
            is_shown=is_shown,
        )
        if mined is None:
            return written
        return replace(
            written,
            block_number=mined.block_number,
            gas_used=mined.gas_used,
            effective_gas_price=mined.effective_gas_price,
            block_hash=mined.block_hash,
            transaction_index=mined.transaction_index,
            from_address=mined.from_address or None,
            to=mined.to,
        )


def write_sightings(rows: Iterable[tuple[str, Sighting]]) -> None:
    """Store what nodes have said of pending transactions. One that is suspected is replaced by
    the followed transaction that has its nonce and is mined, if there is one."""
    ordered = sorted(rows, key=lambda row: row[0])
    if not ordered:
        return
    fetch(
        f"WITH {_SIGHTED} UPDATE chain_transaction t SET nonce = v.nonce,"
        ' from_address = v.from_address, "to" = v."to",'
        f" missing_since = {moment('v.missing_since')}, missing_checks = v.missing_checks,"
        " replaced_suspected = CASE WHEN v.suspected THEN true"
        " WHEN t.replaced_suspected THEN false ELSE t.replaced_suspected END,"
        " replaced_by = COALESCE(t.replaced_by, CASE WHEN v.suspected AND"
        " t.replaced_suspected IS NOT TRUE THEN"
        " (SELECT o.hash FROM chain_transaction o WHERE o.network_id = t.network_id"
        " AND o.from_address = v.from_address AND o.nonce = v.nonce AND o.hash <> t.hash"
        " AND o.status IN ('confirmed', 'failed') LIMIT 1) END),"
        f" updated_at = {TOUCHED} FROM v"
        " WHERE t.object_id = v.object_id AND t.status = 'pending'",
        {
            "object_id": [object_id for object_id, _ in ordered],
            **_SIGHTING.parameters([sighting for _, sighting in ordered]),
        },
        prepare=True,
    )
