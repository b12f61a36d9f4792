"""The statements on ``chain_smart_contract`` and the version of a network's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_value


class ContractRow(NamedTuple):
    """A registered contract. ``row_version`` changes with every write of the row.

    ``behind`` is JSON, ``looked_at`` seconds since the epoch.
    """

    object_id: str
    row_version: Annotated[str, "{row}.xmin"]
    address: str
    name: Annotated[str, "left(COALESCE({row}.name, ''), %(longest)s)"]
    listening: bool | None
    behind: str | None
    looked_at: Annotated[float, "COALESCE(extract(epoch FROM {row}.behind_looked_at), 0)"]


class AbiRow(NamedTuple):
    """The ABI of a contract, JSON."""

    object_id: str
    row_version: Annotated[str, "{row}.xmin"]
    abi: str | None


# Rows that no rule has seen, of an import for instance, must not stop their network.
_REGISTERED: Final = f"""
SELECT {select_list(ContractRow, "c")} FROM chain_smart_contract c
 WHERE network_id = %(network)s AND address ~ '^0x[0-9a-fA-F]{{40}}$'
 ORDER BY created_at, object_id
"""
_ABIS: Final = f"""
SELECT {select_list(AbiRow, "c")} FROM chain_smart_contract c
 WHERE object_id = ANY(%(ids)s::text[])
"""


def version(network_id: int) -> int:
    """Return the version of a network's contracts, which grows with every change; 0 for none."""
    sql = "SELECT contracts FROM chain_cursor WHERE network_id = %(network)s"
    return fetch_value(int, sql, {"network": network_id}, prepare=True) or 0


def registered(network_id: int, longest_name: int) -> list[ContractRow]:
    """Return a network's contracts, the oldest first, with names cut to so many characters."""
    params = {"network": network_id, "longest": longest_name}
    return fetch_rows(ContractRow, _REGISTERED, params, prepare=True)


def abis(object_ids: Sequence[str]) -> list[AbiRow]:
    """Return the ABIs of these contracts."""
    return fetch_rows(AbiRow, _ABIS, {"ids": [*object_ids]}, prepare=True)


def store_behind(behind: Mapping[str, str]) -> None:
    """Store, for contracts by their ids, the JSON of the addresses whose code they run."""
    fetch(
        "UPDATE chain_smart_contract c SET behind = n.behind::jsonb,"
        " behind_looked_at = statement_timestamp()"
        " FROM unnest(%(ids)s::text[], %(behind)s::text[]) AS n(object_id, behind)"
        " WHERE c.object_id = n.object_id",
        {"ids": [*behind], "behind": [*behind.values()]},
        prepare=True,
    )
