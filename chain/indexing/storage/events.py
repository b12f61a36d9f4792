"""Events into PostgreSQL, each exactly once, and into the outbox of what subscribers are told.

Functions that store belong into the caller's transaction, which holds the lock of the network's
cursor if anybody is told: the outbox is numbered under it. Many rows go into a temporary table
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
from chain.models.finality import OF_EVENT
from objects.core.names import new_object_ids
from objects.database.statements import fetch

_STAGING = """
CREATE TEMPORARY TABLE IF NOT EXISTS chain_event_staging (
    object_id text, contract_name text, event_name text, address text, transaction_hash text,
    block_number bigint, block_hash text, log_index bigint, transaction_index bigint,
    ordinal bigint, args jsonb, block_timestamp timestamptz
) ON COMMIT DELETE ROWS
"""
_SEPARATORS = 11  # in a line of it
_FEW: Final = 200  # rows; from about here on COPY is quicker
# The same columns, as parameters.
_GIVEN = """unnest(
    %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[],
    %s::bigint[], %s::bigint[], %s::bigint[], %s::jsonb[], %s::timestamptz[])
    AS g(object_id, contract_name, event_name, address, transaction_hash, block_number, block_hash,
         log_index, transaction_index, ordinal, args, block_timestamp)"""
NULL: Final = r"\N"
NOW = "date_trunc('milliseconds', statement_timestamp())"
_INSERT = f"""
INSERT INTO chain_contract_event AS e (
    object_id, created_at, updated_at, data, network_id, contract_name, event_name, address,
    transaction_hash, block_number, block_hash, log_index, transaction_index, ordinal, args,
    timestamp, canonical, block_timestamp)
SELECT object_id, {NOW}, {NOW}, jsonb_build_object(), %s, contract_name, event_name, address,
       transaction_hash, block_number, block_hash, log_index, transaction_index, ordinal, args,
       {NOW}, true, block_timestamp
  FROM {{source}} ORDER BY block_number, log_index, block_hash
    ON CONFLICT (network_id, block_number, log_index, block_hash)
    DO UPDATE SET canonical = true, updated_at = GREATEST(e.updated_at, {NOW}),
        contract_name = EXCLUDED.contract_name, event_name = EXCLUDED.event_name,
        address = EXCLUDED.address, transaction_hash = EXCLUDED.transaction_hash,
        transaction_index = EXCLUDED.transaction_index, ordinal = EXCLUDED.ordinal,
        args = EXCLUDED.args,
        block_timestamp = COALESCE(EXCLUDED.block_timestamp, e.block_timestamp)
    WHERE NOT e.canonical
"""
# A row may have been removed because it was wrong, or have been decoded by another ABI: one that
# comes back is as it is read now.


def moment_text(column: str) -> str:
    """A moment as clients read it."""
    return f"to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"


def _date(column: str) -> str:
    return f"json_build_object('__type', 'Date', 'iso', {moment_text(column)})"


# As REST shows an event: a field without a value isn't there.
_PAYLOAD = f"""
json_strip_nulls(json_build_object(
    'objectId', e.object_id, 'createdAt', {moment_text("e.created_at")},
    'updatedAt', {moment_text("e.updated_at")}, 'networkId', e.network_id,
    'contractName', e.contract_name, 'eventName', e.event_name, 'address', e.address,
    'transactionHash', e.transaction_hash, 'blockNumber', e.block_number,
    'blockHash', e.block_hash, 'logIndex', e.log_index,
    'transactionIndex', e.transaction_index, 'ordinal', e.ordinal, 'args', e.args,
    'blockTimestamp', CASE WHEN e.block_timestamp IS NOT NULL
                           THEN {_date("e.block_timestamp")} END,
    'timestamp', {_date("e.timestamp")}))::text
"""

# Of a log in its transaction, whatever the block.
PLACE: Final = "md5(concat_ws(' ', e.transaction_hash, e.address, e.ordinal))::uuid"


def outbox_insert(op: str, direction: str) -> str:
    """The statement that tells subscribers of the events ``changed e`` in the order of the chain,
    or against it. Its parameters are the network and the number to go on from.

    Under the lock of the network's cursor, whose heights are still those of before: they say how
    final an event is that is removed.
    """
    finality = OF_EVENT.replace("{row}", "e") if op == "removed" else "NULL"
    return (
        "INSERT INTO chain_outbox"
        " (network_id, seq, op, event_id, place, finality, payload, created_at)"
        " SELECT %s, %s + row_number() OVER"
        f" (ORDER BY e.block_number {direction}, e.log_index {direction}), '{op}', e.object_id,"
        f" {PLACE}, {finality}, {_PAYLOAD}, {NOW} FROM changed e ORDER BY 2"
    )


_ADD_AND_TELL = (
    f"WITH changed AS ({_INSERT} RETURNING e.*),"
    f" told AS ({outbox_insert('added', 'ASC')} RETURNING 1)"
    " SELECT count(*) FROM told"
)
_ADD = f"WITH changed AS ({_INSERT} RETURNING 1) SELECT count(*) FROM changed"
_REMOVE = f"""
WITH changed AS (
    UPDATE chain_contract_event AS e
       SET canonical = false, updated_at = GREATEST(e.updated_at, {NOW})
     WHERE e.network_id = %s AND e.block_number > %s AND e.canonical
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
    """What there is to do before the transaction, in a thread that nobody waits for."""
    unique = _unique(rows)
    by_address = Counter(row.address for row in unique)
    if len(unique) <= _FEW:
        return Ready(len(unique), unique, "", by_address)
    return Ready(len(unique), (), _lines(unique), by_address)


def store_ready(network_id: int, parts: Sequence[Ready]) -> int:
    """Store the events of parts that have no block in common; nobody is told of them. Returns how
    many were not there, or were there as removed ones."""
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
    told = () if after_seq is None else (network_id, after_seq)
    if len(new) <= _FEW:
        statement = _ADD if after_seq is None else _ADD_AND_TELL
        params = (str(network_id), *_columns(new), *told)
        [(count,)] = fetch(statement.format(source=_GIVEN), params, prepare=True)
        return int(count)
    _copy([_lines(new)])
    if after_seq is None:
        return _add_copied(network_id)
    statement = _ADD_AND_TELL.format(source="chain_event_staging")
    [(count,)] = fetch(statement, (str(network_id), *told), prepare=False)
    return int(count)


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
    """Store what is in the temporary table, telling nobody."""
    with connection.cursor() as cursor:
        # Without RETURNING: of history there may be hundreds of thousands.
        cursor.execute(_INSERT.format(source="chain_event_staging"), (str(network_id),))
        return int(cursor.rowcount)


def remove_events(network_id: int, above: int, *, after_seq: int) -> int:
    """Take the events above this height out of the chain; how many.

    Rows ``removed`` are put into the outbox, numbered from ``after_seq`` + 1 on, the last event of
    the chain first.
    """
    params = (str(network_id), above, network_id, after_seq)
    [(count,)] = fetch(_REMOVE, params, prepare=False)
    return int(count)


def _columns(rows: Sequence[EventRow]) -> list[list[Any]]:
    """The rows as parameters: a list for each column."""
    values = [
        (
            *(object_id, row.contract_name, row.event_name, row.address, row.transaction_hash),
            *(row.block_number, row.block_hash, row.log_index, row.transaction_index, row.ordinal),
            row.args,
            row.block_timestamp,
        )
        for object_id, row in zip(new_object_ids(len(rows)), rows, strict=True)
    ]
    return [[*column] for column in zip(*values, strict=True)]


def _lines(rows: Sequence[EventRow]) -> str:
    """The rows as ``COPY`` reads them."""
    lines = []
    for object_id, row in zip(new_object_ids(len(rows)), rows, strict=True):
        name = NULL if row.event_name is None else _escaped(row.event_name)
        lines.append(
            f"{object_id}\t{_escaped(row.contract_name)}\t{name}\t{row.address}"
            f"\t{row.transaction_hash}\t{row.block_number}\t{row.block_hash}\t{row.log_index}"
            f"\t{row.transaction_index}\t{row.ordinal}\t{_escaped(row.args)}"
            f"\t{row.block_timestamp or NULL}\n"
        )
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\t") != _SEPARATORS * len(lines):
        # Hashes are a node's text. They aren't escaped since they have nothing to be escaped.
        raise ValueError("a hash of a log isn't one")
    return text


def _escaped(text: str) -> str:
    if "\\" in text or "\n" in text or "\t" in text or "\r" in text:
        text = text.replace("\\", "\\\\").replace("\t", "\\t")
        return text.replace("\n", "\\n").replace("\r", "\\r")
    return text
