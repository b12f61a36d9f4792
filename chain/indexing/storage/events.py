"""Events into PostgreSQL, each exactly once, and into the outbox for subscribers.

Functions that store belong into the caller's transaction, which holds the lock of the network's
cursor if subscribers are notified: the outbox is numbered under it. Many rows go into a temporary
table
first, all at once, since ``COPY`` knows no conflicts, and from there into the table. A few are
parameters of the statement: a transaction that has used a temporary table takes milliseconds more
to commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.db import connection

from chain.core.blocks.events import EventRow
from chain.core.columns import Column, Columns, moment_text
from chain.models.finality_sql import OF_EVENT
from chain.models.stored import EVENT
from objects.core.names import new_object_ids
from objects.database.statements import fetch_values
from objects.sql.rows import NOW, touched

_FEW: Final = 200  # rows; from about here on COPY is quicker
_STAGED: Final = Columns((Column("object_id", "text"), *EVENT.written))
_STAGING = f"""
CREATE TEMPORARY TABLE IF NOT EXISTS chain_event_staging ({_STAGED.definitions})
ON COMMIT DELETE ROWS
"""
_GIVEN = _STAGED.unnest("g")  # the same columns, as parameters
_INSERT = f"""
INSERT INTO chain_contract_event AS e (
    {_STAGED.names}, created_at, updated_at, data, network_id, timestamp, canonical)
SELECT {_STAGED.names}, {NOW}, {NOW}, jsonb_build_object(), %(network)s::bigint::text, {NOW}, true
  FROM {{source}} ORDER BY block_number, log_index, block_hash
    ON CONFLICT (network_id, block_number, log_index, block_hash)
    DO UPDATE SET canonical = true, updated_at = {touched("e")},
        {EVENT.updated.assignments("EXCLUDED", "e")}
    WHERE NOT e.canonical
"""
# A row may have been removed because it was wrong, or have been decoded by another ABI: one that
# comes back is as it is read now.


def _date(column: str) -> str:
    return f"json_build_object('__type', 'Date', 'iso', {moment_text(column)})"


def _shown(column: Column) -> str:
    """A field of the payload: its name and its value."""
    value = f"e.{column.sql_name}"
    if column.sql_type == "timestamptz":
        value = f"CASE WHEN {value} IS NOT NULL THEN {_date(value)} END"
    return f"'{column.field}', {value}"


# As REST shows an event: a field without a value isn't there.
_PAYLOAD = f"""
json_strip_nulls(json_build_object(
    'objectId', e.object_id, 'createdAt', {moment_text("e.created_at")},
    'updatedAt', {moment_text("e.updated_at")}, {", ".join(map(_shown, EVENT))}))::text
"""

# Of a log in its transaction, in any block.
PLACE: Final = "md5(concat_ws(' ', e.transaction_hash, e.address, e.ordinal))::uuid"


def outbox_insert(op: str, direction: str) -> str:
    """The statement that tells subscribers of the events ``changed e`` in the order of the chain,
    or against it. Its parameters are ``network`` and ``after``, the number to go on from.

    Under the lock of the network's cursor, whose heights are still those of before: they say how
    final an event is that is removed.
    """
    finality = OF_EVENT.replace("{row}", "e") if op == "removed" else "NULL"
    return (
        "INSERT INTO chain_outbox"
        " (network_id, seq, op, event_id, place, finality, payload, created_at)"
        " SELECT %(network)s::bigint, %(after)s::bigint + row_number() OVER"
        f" (ORDER BY e.block_number {direction}, e.log_index {direction}), '{op}', e.object_id,"
        f" {PLACE}, {finality}, {_PAYLOAD}, {NOW} FROM changed e ORDER BY 2"
    )


_ADD_AND_TELL = (
    f"WITH changed AS ({_INSERT} RETURNING e.*),"
    f" told AS ({outbox_insert('added', 'ASC')} RETURNING 1)"
    " SELECT count(*) FROM told"
)
_ADD = f"WITH changed AS ({_INSERT} RETURNING 1) SELECT count(*) FROM changed"
_ADD_FEW = _ADD.format(source=_GIVEN)
_ADD_FEW_AND_TELL = _ADD_AND_TELL.format(source=_GIVEN)
_ADD_COPIED_AND_TELL = _ADD_AND_TELL.format(source="chain_event_staging")
_INSERT_COPIED = _INSERT.format(source="chain_event_staging")
_REMOVE = f"""
WITH changed AS (
    UPDATE chain_contract_event AS e
       SET canonical = false, updated_at = {touched("e")}
     WHERE e.network_id = %(network)s::bigint::text AND e.block_number > %(above)s AND e.canonical
    RETURNING e.*),
told AS ({outbox_insert("removed", "DESC")} RETURNING 1)
SELECT count(*) FROM told
"""


class Ready(NamedTuple):
    """Events of some blocks, each once, in the form in which they are stored: few as rows, many as
    the lines that ``COPY`` reads."""

    number: int
    rows: Sequence[EventRow]
    lines: str
    by_address: Mapping[str, int]


def make_ready(rows: Sequence[EventRow]) -> Ready:
    """Prepare rows before the transaction, in a thread of its own."""
    unique = _unique(rows)
    by_address = Counter(row.address for row in unique)
    if len(unique) <= _FEW:
        return Ready(len(unique), unique, "", by_address)
    return Ready(len(unique), (), _lines(unique), by_address)


def store_ready(network_id: int, parts: Sequence[Ready]) -> int:
    """Store the events of parts that have no block in common; subscribers aren't notified. Returns
    how many were not there, or were there as removed ones."""
    if sum(part.number for part in parts) <= _FEW:
        rows = [row for part in parts for row in part.rows]
        return store_events(network_id, rows, after_seq=None)
    _copy([part.lines or _lines(part.rows) for part in parts])
    return _add_copied(network_id)


def store_events(network_id: int, rows: Sequence[EventRow], *, after_seq: int | None) -> int:
    """Store these events; how many were not there, or were there as removed ones.

    For those, rows ``added`` are put into the outbox, numbered from ``after_seq`` + 1 on in the
    order of the chain, unless it is None. An event that is there stays as it is; one that was
    removed comes back under its object id, with the contents that it is read with now.
    """
    new = _unique(rows)
    if not new:
        return 0
    params: dict[str, Any] = {"network": network_id}
    if after_seq is not None:
        params["after"] = after_seq
    if len(new) <= _FEW:
        params["object_id"] = new_object_ids(len(new))
        params |= EVENT.written.parameters(new)
        statement = _ADD_FEW if after_seq is None else _ADD_FEW_AND_TELL
        [count] = fetch_values(int, statement, params, prepare=True)
        return count
    _copy([_lines(new)])
    if after_seq is None:
        return _add_copied(network_id)
    [count] = fetch_values(int, _ADD_COPIED_AND_TELL, params, prepare=False)
    return count


def _unique(rows: Sequence[EventRow]) -> list[EventRow]:
    """Each event once, as it came first."""
    unique = {(row.block_number, row.log_index, row.block_hash): row for row in reversed(rows)}
    return [*reversed(unique.values())]


def _copy(texts: Sequence[str]) -> None:
    """Put lines into the temporary table, which holds nothing else then."""
    with connection.cursor() as cursor:
        cursor.execute(_STAGING)
        cursor.execute("DELETE FROM chain_event_staging")
        with cursor.copy("COPY chain_event_staging FROM STDIN") as copy:
            for text in texts:
                copy.write(text)


def _add_copied(network_id: int) -> int:
    """Store what is in the temporary table, without notifying subscribers."""
    with connection.cursor() as cursor:
        # Without RETURNING: of history there may be hundreds of thousands.
        cursor.execute(_INSERT_COPIED, {"network": network_id})
        return int(cursor.rowcount)


def remove_events(network_id: int, above: int, *, after_seq: int) -> int:
    """Take the events above this height out of the chain; how many.

    Rows ``removed`` are put into the outbox, numbered from ``after_seq`` + 1 on, the last event of
    the chain first.
    """
    params = {"network": network_id, "above": above, "after": after_seq}
    [count] = fetch_values(int, _REMOVE, params, prepare=False)
    return count


def _lines(rows: Sequence[EventRow]) -> str:
    """The rows as ``COPY`` reads them."""
    columns = EVENT.written.copy_texts(rows)
    lines = [*map("\t".join, zip(new_object_ids(len(rows)), *columns, strict=True)), ""]
    text = "\n".join(lines)
    separators = len(EVENT.written) * len(rows)
    if text.count("\n") != len(rows) or text.count("\t") != separators:
        # Hashes are a node's text. They aren't escaped since they have nothing to be escaped.
        raise ValueError("a hash of a log isn't one")
    return text
