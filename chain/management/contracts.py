"""Arguments of commands: a network, some of its contracts, a range of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from chain.core.names import address_of, checksummed
from chain.models import Blockchain, Cursor, SmartContract


def add_arguments(parser: CommandParser, *, doing: str) -> None:
    """The network, ``--contract``, ``--from`` and ``--to`` of a command."""
    parser.add_argument("network", type=int, metavar="NETWORK", help="the id of the network")
    parser.add_argument(
        "--contract",
        action="append",
        default=[],
        metavar="CONTRACT",
        help=f"{doing} only this one, by its address or its name; may be given several times",
    )
    parser.add_argument("--from", type=int, dest="first", metavar="BLOCK", help="the first block")
    parser.add_argument("--to", type=int, dest="last", metavar="BLOCK", help="the last block")


def network_read(options: dict[str, Any]) -> Cursor:
    """The cursor of the network that was named. ``CommandError`` if nothing has been read of it."""
    network_id = options["network"]
    if not Blockchain.objects.filter(network_id=network_id).exists():
        raise CommandError(f"There is no network {network_id}.")
    cursor = Cursor.objects.filter(pk=network_id).first()
    if cursor is None or cursor.number is None:
        raise CommandError(
            f"Network {network_id} has not answered yet; chain_status says more about it."
        )
    return cursor


def contracts_named(options: dict[str, Any]) -> list[str] | None:
    """The addresses of the contracts that were named; None if none was."""
    if not options["contract"]:
        return None
    addresses = {}
    for name in options["contract"]:
        addresses.update(dict.fromkeys(_addresses(options["network"], name)))
    return [*addresses]


def listening(network_id: int) -> list[str]:
    """The addresses of all contracts that are listened to."""
    contracts = SmartContract.objects.filter(network_id=network_id, listening=True)
    addresses = contracts.order_by("created_at").values_list("address", flat=True)
    return [checksummed(address.lower()) for address in addresses if address]


def range_of(options: dict[str, Any], first: int, last: int) -> tuple[int, int]:
    """The range that was given, or these blocks."""
    chosen = (
        first if options["first"] is None else options["first"],
        last if options["last"] is None else options["last"],
    )
    if chosen[0] < 0 or chosen[0] > chosen[1]:
        raise CommandError(f"--from, --to: no blocks from {chosen[0]} to {chosen[1]}")
    return chosen


def _addresses(network_id: int, name: str) -> Sequence[str]:
    rows = SmartContract.objects.filter(network_id=network_id)
    if name.startswith("0x"):
        try:
            rows = rows.filter(address=address_of(name))
        except ValueError as error:
            raise CommandError(f"--contract {name}: {error}") from None
    else:
        rows = rows.filter(name=name)
    contracts = [*rows.values_list("address", "listening")]
    if not contracts:
        raise CommandError(f"--contract {name}: not registered on network {network_id}")
    indexed = [str(address) for address, is_heard in contracts if is_heard]
    if not indexed:
        raise CommandError(f"--contract {name}: not listened to; set listening to true first")
    return indexed
