"""Followed transactions in the database: read, locked, written.

Writers take their rows in the order of their ids, so that two never wait for each other. Each one
sets ``next_check_at``: whoever finds it as it was knows that nobody has come between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from chain.core.transactions.sightings import Sighting
from chain.core.transactions.states import CONFIRMED, FAILED, Mined, Record
from objects.database.statements import Row, fetch


class Followed(msgspec.Struct, frozen=True, gc=False):
    """A row: its key, what the table of states knows, and what nodes have said besides. ``due`` is
    ``next_check_at`` to the last digit."""

    object_id: str
    hash: str
    record: Record
    sighting: Sighting
    failed_checks: int
    due: str | None


def milliseconds(column: str) -> str:
    """SQL for a moment in milliseconds."""
    return f"round(date_part('epoch', {column}) * 1000)::bigint"


def moment(value: str) -> str:
    """SQL for the moment that milliseconds stand for."""
    return f"to_timestamp({value}::double precision / 1000)"


COLUMNS: Final = ", ".join(
    (
        "t.object_id, t.hash, t.status, COALESCE(t.attempts, 0)",
        milliseconds("t.created_at"),
        milliseconds("t.next_check_at"),
        milliseconds("t.pending_since"),
        milliseconds("t.last_checked"),
        "t.finality, COALESCE(t.reorg_count, 0), t.block_number, t.block_hash",
        "t.transaction_index, t.gas_used, t.effective_gas_price, t.from_address, t.to, t.nonce",
        milliseconds("t.missing_since"),
        "t.missing_checks, COALESCE(t.replaced_suspected, false), t.late_receipt, t.failed_checks",
        "t.next_check_at",
    )
)


def followed(row: Row) -> Followed:
    """A row whose first values are ``COLUMNS``."""
    object_id, tx_hash, status, attempts, created_at, due_at, pending_since, last_checked = row[:8]
    finality, reorg_count, block_number, block_hash, transaction_index, gas_used, price = row[8:15]
    from_address, to, nonce, missing_since, missing_checks, suspected, late = row[15:22]
    mined = None
    if status in (CONFIRMED, FAILED) and block_hash is not None and block_number is not None:
        mined = Mined(
            status == CONFIRMED,
            int(block_number),
            block_hash,
            int(transaction_index or 0),
            gas_used or "0",
            price,
            from_address or "",
            to,
        )
    state = Record(
        status,
        int(attempts),
        int(created_at),
        _whole(due_at),
        _whole(pending_since),
        _whole(last_checked),
        mined,
        finality,
        int(reorg_count),
        None if late is None else _late(late, from_address, to),
    )
    sighting = Sighting(
        _whole(nonce),
        from_address,
        to,
        _whole(missing_since),
        int(missing_checks),
        suspected == "t",
    )
    return Followed(object_id, tx_hash, state, sighting, int(row[22]), row[23])


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


class _Late(msgspec.Struct, rename="camel"):
    """``lateReceipt`` as it is kept."""

    status: str
    block_number: int
    block_hash: str
    transaction_index: int
    gas_used: str
    effective_gas_price: str | None


def _late(text: str, from_address: str | None, to: str | None) -> Mined | None:
    try:
        said = msgspec.json.decode(text, type=_Late)
    except msgspec.ValidationError:
        return None  # brought along from elsewhere
    return Mined(
        said.status == CONFIRMED,
        said.block_number,
        said.block_hash,
        said.transaction_index,
        said.gas_used,
        said.effective_gas_price,
        from_address or "",
        to,
    )


def _late_json(mined: Mined | None) -> str | None:
    if mined is None:
        return None
    said = _Late(
        mined.status,
        mined.block_number,
        mined.block_hash,
        mined.transaction_index,
        mined.gas_used,
        mined.effective_gas_price,
    )
    return msgspec.json.encode(said).decode()


# -- Writing --------------------------------------------------------------------------------------

_NOTHING: Final = Sighting()
_TOUCHED: Final = "GREATEST(t.updated_at, date_trunc('milliseconds', statement_timestamp()))"


def _held(values: str, names: str, *, unless_changed: bool = False) -> str:
    """SQL for the rows that ``values`` are about, locked in their order; or only for those whose
    check is due when it was. ``v`` has the values' names."""
    condition = " WHERE h.next_check_at = v.was" if unless_changed else ""
    return (
        f"v AS MATERIALIZED (SELECT v.* FROM unnest({values}) AS v({names})"
        f" JOIN chain_transaction h USING (object_id){condition}"
        " ORDER BY v.object_id FOR UPDATE OF h)"
    )


_SIGHTING_ARRAYS: Final = (
    "%s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::int[], %s::boolean[]"
)
_SIGHTING_NAMES: Final = 'nonce, from_address, "to", since, checks, suspected'


def _sighting_values(sightings: Sequence[Sighting]) -> tuple[list[Any], ...]:
    """A list for each of ``_SIGHTING_NAMES``."""
    return (
        [one.nonce for one in sightings],
        [one.from_address for one in sightings],
        [one.to for one in sightings],
        [one.missing_since for one in sightings],
        [one.missing_checks for one in sightings],
        [one.suspected for one in sightings],
    )


_MISSED: Final = _held(
    "%s::text[], %s::timestamptz[], %s::text[], %s::int[], %s::bigint[], %s::bigint[],"
    f" %s::boolean[], {_SIGHTING_ARRAYS}",
    f"object_id, was, status, attempts, checked, due, is_seen, {_SIGHTING_NAMES}",
    unless_changed=True,
)
_PAUSED: Final = _held(
    "%s::text[], %s::timestamptz[], %s::bigint[]", "object_id, was, due", unless_changed=True
)
_SIGHTED: Final = _held(f"%s::text[], {_SIGHTING_ARRAYS}", f"object_id, {_SIGHTING_NAMES}")


_SEEN: Final = ", ".join(
    f"{column} = CASE WHEN v.is_seen THEN {value} ELSE t.{column} END"
    for column, value in (
        ("nonce", "v.nonce"),
        ("from_address", "v.from_address"),
        ('"to"', 'v."to"'),
        ("missing_since", moment("v.since")),
        ("missing_checks", "v.checks"),
    )
)


def write_missed(rows: Sequence[tuple[Followed, Record, Sighting | None]]) -> int:
    """Store checks that have found nothing for pending transactions, with what nodes have said of
    them if that is new, unless something has come between; how many are stored."""
    if not rows:
        return 0
    written = fetch(
        f"WITH {_MISSED}, done AS (UPDATE chain_transaction t SET status = v.status,"
        f" attempts = v.attempts, last_checked = {moment('v.checked')},"
        f" next_check_at = {moment('v.due')}, failed_checks = 0, {_SEEN}, replaced_suspected ="
        " CASE WHEN v.is_seen AND t.replaced_suspected THEN v.suspected"
        f" ELSE t.replaced_suspected END, updated_at = {_TOUCHED}"
        " FROM v WHERE t.object_id = v.object_id RETURNING 1) SELECT count(*) FROM done",
        (
            [row.object_id for row, _, _ in rows],
            [row.due for row, _, _ in rows],
            [new.status for _, new, _ in rows],
            [new.attempts for _, new, _ in rows],
            [new.last_checked for _, new, _ in rows],
            [new.due_at for _, new, _ in rows],
            [sighting is not None for _, _, sighting in rows],
            *_sighting_values([sighting or _NOTHING for _, _, sighting in rows]),
        ),
        prepare=True,
    )
    return int(written[0][0])


def write_pauses(rows: Iterable[tuple[Followed, int]]) -> None:
    """Check these again at these moments, since no node has answered; unless something has come
    between."""
    paused = [*rows]
    fetch(
        f"WITH {_PAUSED} UPDATE chain_transaction t SET failed_checks = t.failed_checks + 1,"
        f" next_check_at = {moment('v.due')}"
        " FROM v WHERE t.object_id = v.object_id",
        (
            [row.object_id for row, _ in paused],
            [row.due for row, _ in paused],
            [due for _, due in paused],
        ),
        prepare=True,
    )


_FOUND: Final = (
    ("status", "text"),
    ("block_number", "bigint"),
    ("gas_used", "text"),
    ("effective_gas_price", "text"),
    ("block_hash", "text"),
    ("transaction_index", "bigint"),
    ("from_address", "text"),
    ('"to"', "text"),
    ("finality", "text"),
    ("reorg_count", "int"),
    ("pending_since", "bigint"),
    ("late_receipt", "jsonb"),
    ("next_check_at", "bigint"),
    ("is_shown", "boolean"),
)
_MOMENTS: Final = frozenset({"pending_since", "next_check_at"})
# What a transaction is stays known when its block is gone.
_KEPT: Final = frozenset({"from_address", '"to"'})


def _assignment(name: str) -> str:
    value = f"v.{name}"
    if name in _MOMENTS:
        value = moment(value)
    if name in _KEPT:
        value = f"COALESCE({value}, t.{name})"
    return f"{name} = {value}"


def write(rows: Sequence[tuple[Followed, Record]], *, unless_changed: bool = False) -> int:
    """Store these records, whatever has become of them; how many were still there to be."""
    if not rows:
        return 0
    values = [_values(row, new) for row, new in rows]
    arrays = ", ".join(f"%s::{'text' if kind == 'jsonb' else kind}[]" for _, kind in _FOUND)
    names = ", ".join(name for name, _ in _FOUND)
    held = _held(
        f"%s::text[], %s::timestamptz[], {arrays}",
        f"object_id, was, {names}",
        unless_changed=unless_changed,
    )
    assignments = ", ".join(_assignment(name) for name, _ in _FOUND[:-1] if name != "late_receipt")
    written = fetch(
        f"WITH {held}, done AS (UPDATE chain_transaction t SET {assignments},"
        " late_receipt = v.late_receipt::jsonb, failed_checks = 0, missing_checks = 0,"
        " missing_since = NULL, replaced_suspected ="
        " CASE WHEN t.replaced_suspected AND v.is_shown THEN false ELSE t.replaced_suspected END,"
        f" updated_at = CASE WHEN v.is_shown THEN {_TOUCHED} ELSE t.updated_at END"
        " FROM v WHERE t.object_id = v.object_id RETURNING 1)"
        " SELECT count(*) FROM done",
        (
            [row.object_id for row, _ in rows],
            [row.due for row, _ in rows],
            *([one[n] for one in values] for n in range(len(_FOUND))),
        ),
        prepare=True,
    )
    return int(written[0][0])


def _values(row: Followed, new: Record) -> tuple[Any, ...]:
    mined = new.mined
    found: tuple[Any, ...] = (None,) * 7
    if mined is not None:
        found = (
            mined.block_number,
            mined.gas_used,
            mined.effective_gas_price,
            mined.block_hash,
            mined.transaction_index,
            mined.from_address or None,
            mined.to,
        )
    old = row.record
    late = _late_json(new.late)
    is_shown = late != _late_json(old.late) or (
        (old.status, old.mined, old.finality, old.reorg_count, old.pending_since)
        != (new.status, mined, new.finality, new.reorg_count, new.pending_since)
    )
    return (
        new.status,
        *found,
        new.finality,
        new.reorg_count or None,
        new.pending_since,
        late,
        new.due_at,
        is_shown,
    )


def write_sightings(rows: Iterable[tuple[str, Sighting]]) -> None:
    """Store what nodes have said of pending transactions. One that is suspected is replaced by
    the followed transaction that has its nonce and is mined, if there is one."""
    found = sorted(rows, key=lambda one: one[0])
    if not found:
        return
    fetch(
        f"WITH {_SIGHTED} UPDATE chain_transaction t SET nonce = v.nonce,"
        ' from_address = v.from_address, "to" = v."to",'
        f" missing_since = {moment('v.since')}, missing_checks = v.checks,"
        " replaced_suspected = CASE WHEN v.suspected THEN true"
        " WHEN t.replaced_suspected THEN false ELSE t.replaced_suspected END,"
        " replaced_by = COALESCE(t.replaced_by, CASE WHEN v.suspected AND"
        " t.replaced_suspected IS NOT TRUE THEN"
        " (SELECT o.hash FROM chain_transaction o WHERE o.network_id = t.network_id"
        " AND o.from_address = v.from_address AND o.nonce = v.nonce AND o.hash <> t.hash"
        " AND o.status IN ('confirmed', 'failed') LIMIT 1) END),"
        f" updated_at = {_TOUCHED} FROM v"
        " WHERE t.object_id = v.object_id AND t.status = 'pending'",
        (
            [object_id for object_id, _ in found],
            *_sighting_values([sighting for _, sighting in found]),
        ),
        prepare=True,
    )
