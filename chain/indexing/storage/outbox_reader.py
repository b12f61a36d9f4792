"""Read the outbox: events to send to subscribers, and those that were sent before.

Rows are numbered per network without gaps in the order of commits (``chain.models.OutboxEntry``),
so a reader that has read up to a number misses nothing by continuing after it. Old rows are
removed (``chain.indexing.storage.retention``), the newest of each network never.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from chain.indexing.storage.events import PLACE
from chain.models.finality_sql import FINAL, LATEST, OF_EVENT, SAFE, height_of
from objects.database.statements import fetch_rows

Level = Literal["safe", "final"]
_LEVELS: Final = (LATEST, SAFE, FINAL)
CHANNEL: Final = "chain_outbox"
"""Notifications of new rows: the network and the number of its newest, with a blank between."""


class Reach(NamedTuple):
    """Which rows of a network there are. ``oldest`` is ``newest`` + 1 if there is none."""

    oldest: int
    newest: int


class Heights(NamedTuple):
    """Up to which block a network is safe, and up to which it is final, as far as it is read."""

    safe: int
    final: int


class State(NamedTuple):
    """What there is. Numbers of another ``epoch`` mean other rows: a backup was restored.
    ``heights`` are the safe and the final one of each network, -1 if there is none."""

    epoch: str
    networks: dict[int, Reach]
    heights: dict[int, Heights] = {}


class Told(NamedTuple):
    """A row, and what earlier rows that are kept say of the same log, in any block it was
    in: numbers of rows, or None.

    - ``again_of``: the latest that has added it in this same form (name, arguments);
    - ``announced``: the latest that has added this same event (its block included);
    - ``gone``: the latest that has removed it, in any form.
    """

    network_id: int
    seq: int
    op: str
    payload: str
    again_of: int | None
    announced: int | None
    gone: int | None


class _SettledRow(NamedTuple):
    """A row as ``Told``, and whether and how its event is decided."""

    network_id: int
    seq: int
    op: str
    payload: str
    again_of: int | None
    announced: int | None
    gone: int | None
    finality: str | None
    is_gone: bool
    block_number: int | None


class _Mark(NamedTuple):
    network_id: int
    seq: int


class _StateRow(NamedTuple):
    epoch: str | None
    network_id: int | None
    newest: int | None
    oldest: int | None
    safe: int
    final: int


class Settled(NamedTuple):
    """Rows, each with whether it counts, and the block that the next row of a network waits for,
    where there is one."""

    rows: list[tuple[Told, bool]]
    waiting: dict[int, int]


_STATE = f"""
SELECT (SELECT md5(value::text) FROM chain_outbox_epoch LIMIT 1), c.network_id, c.outbox,
       COALESCE((SELECT min(o.seq) FROM chain_outbox o WHERE o.network_id = c.network_id),
                c.outbox + 1),
       COALESCE({height_of(SAFE)}, -1), COALESCE({height_of(FINAL)}, -1)
  FROM (SELECT 1) one LEFT JOIN chain_cursor c ON true
       LEFT JOIN chain_cursor f ON f.network_id = c.network_id
"""
# The arguments in the text of jsonb, which has one order of keys.
_ROWS = """
SELECT o.network_id, o.seq, o.op, o.payload, p.again_of, p.announced, p.gone
  FROM unnest(%(networks)s::bigint[], %(numbers)s::bigint[]) AS wanted(network_id, after_seq)
 CROSS JOIN LATERAL (
       SELECT * FROM chain_outbox t
        WHERE t.network_id = wanted.network_id AND t.seq > wanted.after_seq
        ORDER BY t.seq LIMIT %(limit)s) o
  LEFT JOIN LATERAL (
       SELECT max(b.seq) FILTER (
                  WHERE b.op = 'added'
                    AND b.payload::jsonb -> 'eventName'
                        IS NOT DISTINCT FROM o.payload::jsonb -> 'eventName'
                    AND b.payload::jsonb -> 'args'
                        IS NOT DISTINCT FROM o.payload::jsonb -> 'args') AS again_of,
              max(b.seq) FILTER (
                  WHERE b.op = 'added' AND b.event_id = o.event_id) AS announced,
              max(b.seq) FILTER (WHERE b.op = 'removed') AS gone
         FROM chain_outbox b
        WHERE b.place = o.place AND b.network_id = o.network_id AND b.seq < o.seq) p ON true
 ORDER BY o.network_id, o.seq
"""


# ``x`` is the event of the row as ``finality`` expects it, ``p`` what there is of the same log.
_SETTLED = f"""
SELECT o.network_id, o.seq, o.op, o.payload, p.again_of, p.announced, p.gone,
       CASE WHEN o.op = 'removed' THEN o.finality
            WHEN p.is_gone THEN p.gone_as
            ELSE {OF_EVENT.replace("{row}", "x")} END,
       o.op = 'removed' OR COALESCE(p.is_gone, false), x.block_number
  FROM (SELECT %(reached)s::text[] AS levels) reached
 CROSS JOIN unnest(%(networks)s::bigint[], %(numbers)s::bigint[]) AS wanted(network_id, after_seq)
 CROSS JOIN LATERAL (
       SELECT * FROM chain_outbox t
        WHERE t.network_id = wanted.network_id AND t.seq > wanted.after_seq
        ORDER BY t.seq LIMIT %(limit)s) o
 CROSS JOIN LATERAL (
       SELECT (o.payload::jsonb ->> 'blockNumber')::bigint AS block_number,
              o.network_id::text AS network_id) x
  LEFT JOIN LATERAL (
       SELECT max(b.seq) FILTER (
                  WHERE b.seq < o.seq AND b.op = 'added' AND b.next_finality = ANY(reached.levels)
                    AND b.payload::jsonb -> 'eventName'
                        IS NOT DISTINCT FROM o.payload::jsonb -> 'eventName'
                    AND b.payload::jsonb -> 'args'
                        IS NOT DISTINCT FROM o.payload::jsonb -> 'args') AS again_of,
              max(b.seq) FILTER (
                  WHERE b.seq < o.seq AND b.op = 'added' AND b.event_id = o.event_id) AS announced,
              max(b.seq) FILTER (
                  WHERE b.seq < o.seq AND b.op = 'removed'
                    AND b.finality = ANY(reached.levels)) AS gone,
              bool_or(b.next_op = 'removed') FILTER (WHERE b.seq = o.seq) AS is_gone,
              max(b.next_finality) FILTER (WHERE b.seq = o.seq) AS gone_as
         FROM (SELECT t.*, lead(t.op) OVER w AS next_op, lead(t.finality) OVER w AS next_finality
                 FROM chain_outbox t
                WHERE t.place = o.place AND t.network_id = o.network_id
               WINDOW w AS (PARTITION BY t.event_id ORDER BY t.seq)) b) p ON true
 ORDER BY o.network_id, o.seq
"""
# What isn't decided is in the chain and above the height. There are two ways to the first such row:
# from its events (usually few, at the head) to their rows, or along the rows from the oldest one
# (few, if nothing has become final for days). ``b.seq`` is a row that isn't decided, usually the
# first, since events come by height: it bounds the second way, and the shorter one is taken.
_ROW_OF_EVENT: Final = f"""
SELECT max(o.seq) FROM chain_outbox o
 WHERE o.place = {PLACE} AND o.network_id = f.network_id
   AND o.event_id = e.object_id AND o.op = 'added'
"""


def _undecided(limit: str) -> str:
    """The lowest events of the network ``h`` that aren't decided, at most ``limit``.

    Written as a range of pairs, which only the index that begins with the network serves. With
    ``network_id =`` PostgreSQL takes the index of heights, and reads all networks above the height.
    """
    return (
        "(SELECT * FROM chain_contract_event WHERE network_id <= h.network_id AND canonical"
        " AND (network_id, block_number) > (h.network_id, h.height)"
        f" ORDER BY network_id, block_number NULLS FIRST, log_index, block_hash LIMIT {limit})"
    )


_SAMPLE: Final = 100  # of the lowest events that aren't decided
_MARKS = {
    level: f"""
SELECT f.network_id, LEAST(f.outbox, COALESCE(u.seq - 1, w.seq - 1, b.seq - 1, f.outbox))
  FROM chain_cursor f
 CROSS JOIN LATERAL (
       SELECT COALESCE({height_of(level)}, -1) AS height, f.network_id::text AS network_id,
              (SELECT min(o.seq) FROM chain_outbox o WHERE o.network_id = f.network_id) AS oldest
       ) h
 CROSS JOIN LATERAL (
       SELECT min(({_ROW_OF_EVENT})) AS seq FROM {_undecided(str(_SAMPLE))} e) b
 CROSS JOIN LATERAL (
       SELECT COALESCE(b.seq, f.outbox + 1) - COALESCE(h.oldest, f.outbox + 1) AS rows) l
 CROSS JOIN LATERAL (
       SELECT count(*) > l.rows AS are_more FROM {_undecided("l.rows + 1")} e) n
  LEFT JOIN LATERAL (
       SELECT min(({_ROW_OF_EVENT})) AS seq
         FROM {_undecided("CASE WHEN n.are_more THEN 0 ELSE l.rows END")} e) u ON true
  LEFT JOIN LATERAL (
       SELECT t.seq
         FROM (SELECT * FROM chain_outbox o
                WHERE n.are_more AND o.network_id = f.network_id AND o.op = 'added'
                  AND o.seq < COALESCE(b.seq, f.outbox + 1)
                ORDER BY o.network_id, o.seq) t
        CROSS JOIN LATERAL (
              SELECT 1 FROM chain_contract_event e
               WHERE e.object_id = t.event_id AND e.canonical AND e.block_number > h.height
                 AND t.seq = ({_ROW_OF_EVENT})
               LIMIT 1) e
        ORDER BY t.seq LIMIT 1) w ON true
"""
    for level in (SAFE, FINAL)
}


def state() -> State:
    """Return the epoch, and each network's rows, by one statement."""
    rows = fetch_rows(_StateRow, _STATE, (), prepare=True)
    networks, heights = {}, {}
    for row in rows:
        if row.network_id is not None and row.oldest is not None and row.newest is not None:
            networks[row.network_id] = Reach(row.oldest, row.newest)
            heights[row.network_id] = Heights(row.safe, row.final)
    return State((rows[0].epoch or "none")[:12], networks, heights)


def rows_after(positions: Mapping[int, int], limit: int) -> list[Told]:
    """The rows after these numbers, at most ``limit`` of each network, by network and number."""
    if not positions:
        return []
    return fetch_rows(Told, _ROWS, _after(positions, limit), prepare=True)


def settled_after(positions: Mapping[int, int], limit: int, level: Level) -> Settled:
    """The rows after these numbers whose finality is decided, at most ``limit`` of each network.

    A row is decided when its event has reached the level, or is removed. Those of a network end
    before the first one that isn't, so each one's successor comes later, whenever it's read. A row
    counts if its event reached the level before it was removed, if it was: ``removed`` rows as
    well. Whether it does never changes, and what it says of earlier rows is about those that count.
    """
    if not positions:
        return Settled([], {})
    reached = [
        reached_level
        for reached_level in _LEVELS
        if _LEVELS.index(reached_level) >= _LEVELS.index(level)
    ]
    params = _after(positions, limit) | {"reached": reached}
    rows: list[tuple[Told, bool]] = []
    waiting: dict[int, int] = {}
    for row in fetch_rows(_SettledRow, _SETTLED, params, prepare=True):
        if row.network_id in waiting:
            continue
        if row.finality in reached or row.is_gone:
            rows.append((Told._make(row[: len(Told._fields)]), row.finality in reached))
        else:
            waiting[row.network_id] = row.block_number or 0
    return Settled(rows, waiting)


def settled_marks(level: Level) -> dict[int, int]:
    """Of each network the number of the last row before the first that isn't decided."""
    rows = fetch_rows(_Mark, _MARKS[level], (), prepare=True)
    return {row.network_id: row.seq for row in rows}


def _after(positions: Mapping[int, int], limit: int) -> dict[str, Any]:
    return {"networks": [*positions], "numbers": [*positions.values()], "limit": limit}
