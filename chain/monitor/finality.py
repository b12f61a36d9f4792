"""How certain it is that a transaction stays where it is.

``included`` is in a block, ``safe`` and ``finalized`` in one that the network takes for that: by
its tags, else by how deep the block is (``chain.core.blocks.finality``). Before it is called so,
the block
is compared with the one of its height in the chain; what lies in another one is looked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from backend.kernel.errors import UnderMaintenance
from backend.logs.setup import get_logger
from chain import rpc
from chain.core.blocks.finality import Heights
from chain.core.failures import NodeFailure
from chain.core.node import Node
from chain.core.transactions.states import FINALIZED, SAFE
from chain.models import Blockchain
from chain.monitor.certainty import certain_heights
from objects.database import maintenance
from objects.database.statements import fetch
from objects.database.transactions import all_or_nothing

_MOST: Final = 200
"""Heights that are compared at once."""

log = get_logger("transactions")


def finalize(network_id: int) -> int:
    """Mark what has become safe or final on a network; how many. Asks nobody while nothing can."""
    network = Blockchain.objects.filter(network_id=network_id, active=True).first()
    if network is None or not _is_waited(network_id):
        return 0
    try:
        reached = rpc.attempt(
            network_id, lambda node: certain_heights(node, network_id, network.finality_depth)
        )
        marked = 0
        last = -1
        while True:
            waiting = _waiting(network_id, reached, last)
            if not waiting:
                return marked
            last = max(waiting)
            hashes = _stored(network_id, waiting)
            unknown = [height for height in waiting if height not in hashes]
            if unknown:
                hashes |= rpc.attempt(network_id, partial(_asked, unknown))
            marked += _mark(network_id, reached, hashes)
    except NodeFailure as failure:
        log.warning("finality not asked for", network=network_id, reason=str(failure))
    except UnderMaintenance:
        pass
    return 0


def _is_waited(network_id: int) -> bool:
    return bool(
        fetch(
            "SELECT 1 FROM chain_transaction WHERE network_id = %s"
            " AND finality IN ('included', 'safe') LIMIT 1",
            (str(network_id),),
            prepare=True,
        )
    )


def _waiting(network_id: int, reached: Heights, above: int) -> list[int]:
    """Heights that have been reached by now, above this one, lowest first."""
    rows = fetch(
        "SELECT DISTINCT block_number FROM chain_transaction WHERE network_id = %s"
        " AND block_number > %s AND (finality IN ('included', 'safe') AND block_number <= %s"
        " OR finality = 'included' AND block_number <= %s)"
        f" ORDER BY block_number LIMIT {_MOST}",
        (str(network_id), above, reached.finalized, reached.safe),
        prepare=True,
    )
    return [int(height) for (height,) in rows]


def _stored(network_id: int, wanted: list[int]) -> dict[int, str]:
    rows = fetch(
        "SELECT number, hash FROM chain_block"
        " WHERE network_id = %s AND canonical AND number = ANY(%s::bigint[])",
        (network_id, wanted),
        prepare=True,
    )
    return {int(number): block_hash for number, block_hash in rows}


def _asked(wanted: list[int], node: Node) -> dict[int, str]:
    return {
        header.height: header.hash.lower() for header in node.headers(wanted) if header is not None
    }


def _mark(network_id: int, reached: Heights, hashes: Mapping[int, str]) -> int:
    compared = sorted(hashes)

    def marked() -> int:
        maintenance.check()
        rows = fetch(
            "WITH b AS (SELECT * FROM unnest(%s::bigint[], %s::text[]) AS b(number, hash)),"
            " held AS MATERIALIZED (SELECT h.object_id, h.block_hash = b.hash AS stays,"
            f" CASE WHEN b.number <= %s THEN '{FINALIZED}' ELSE '{SAFE}' END AS reached"
            " FROM chain_transaction h JOIN b ON b.number = h.block_number"
            " WHERE h.network_id = %s AND h.finality IN ('included', 'safe')"
            " ORDER BY h.object_id FOR UPDATE OF h),"
            " marked AS (UPDATE chain_transaction t SET finality = held.reached,"
            " next_check_at = NULL, updated_at = GREATEST(t.updated_at,"
            " date_trunc('milliseconds', statement_timestamp())) FROM held"
            " WHERE t.object_id = held.object_id AND held.stays AND t.finality <> held.reached"
            " RETURNING 1),"
            " lost AS (UPDATE chain_transaction t SET next_check_at = statement_timestamp()"
            " FROM held WHERE t.object_id = held.object_id AND NOT held.stays RETURNING 1)"
            " SELECT (SELECT count(*) FROM marked), (SELECT count(*) FROM lost)",
            (compared, [hashes[one] for one in compared], reached.finalized, str(network_id)),
            prepare=True,
        )
        if rows[0][1] != "0":
            log.warning("transactions in blocks that are gone", network=network_id, n=rows[0][1])
        return int(rows[0][0])

    with maintenance.recording():
        return all_or_nothing(marked)
