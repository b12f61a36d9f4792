"""Reading the outbox: what subscribers are to be told, and what they were told before.

Rows are numbered per network without gaps in the order of commits (``chain.models.OutboxEntry``),
so whoever has read up to a number misses nothing by asking for what comes after it. Old rows are
removed (``chain.pruning``), the newest of each network never.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from objects.database import Row, fetch

CHANNEL: Final = "chain_outbox"
"""Notifications of new rows: the network and the number of its newest, with a blank between."""


class Reach(NamedTuple):
    """Which rows of a network there are. ``oldest`` is ``newest`` + 1 if there is none."""

    oldest: int
    newest: int


class State(NamedTuple):
    """What there is. Numbers of another ``epoch`` mean other rows: a backup was restored."""

    epoch: str
    networks: dict[int, Reach]


class Told(NamedTuple):
    """A row, and what earlier rows that are kept say of the same log, whatever the block it was
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


_STATE = """
SELECT (SELECT md5(value::text) FROM chain_outbox_epoch LIMIT 1), c.network_id, c.outbox,
       COALESCE((SELECT min(o.seq) FROM chain_outbox o WHERE o.network_id = c.network_id),
                c.outbox + 1)
  FROM (SELECT 1) one LEFT JOIN chain_cursor c ON true
"""
# The arguments in the text of jsonb, which has one order of keys.
_ROWS = """
SELECT o.network_id, o.seq, o.op, o.payload, p.again_of, p.announced, p.gone
  FROM unnest(%s::bigint[], %s::bigint[]) AS wanted(network_id, after_seq)
 CROSS JOIN LATERAL (
       SELECT * FROM chain_outbox t
        WHERE t.network_id = wanted.network_id AND t.seq > wanted.after_seq
        ORDER BY t.seq LIMIT %s) o
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


def state() -> State:
    """The epoch, and each network's rows. One statement, whatever the number of rows."""
    rows = fetch(_STATE, (), prepare=True)
    networks = {
        int(network): Reach(int(oldest), int(newest))
        for _, network, newest, oldest in rows
        if network is not None
    }
    return State((rows[0][0] or "none")[:12], networks)


def rows_after(positions: Mapping[int, int], limit: int) -> list[Told]:
    """The rows after these numbers, at most ``limit`` of each network, by network and number."""
    if not positions:
        return []
    params = ([*positions], [*positions.values()], limit)
    return [_told(row) for row in fetch(_ROWS, params, prepare=True)]


def _told(row: Row) -> Told:
    network, seq, op, payload, *before = row
    again_of, announced, gone = (None if one is None else int(one) for one in before)
    return Told(int(network), int(seq), op, payload, again_of, announced, gone)
