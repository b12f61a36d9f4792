"""``manage.py chain_status``: how the networks are."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.kernel.texts.counted import counted
from chain.networks import status
from objects.database import maintenance


class Command(BaseCommand):
    help = (
        "The progress of each network, the state of its providers, pending work, and what is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("network", type=int, nargs="?", metavar="NETWORK", help="only this one")
        parser.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        networks = status.networks(options["network"])
        if options["network"] is not None and not networks:
            raise CommandError(f"There is no network {options['network']}.")
        paused = maintenance.is_chain_paused()
        if options["json"]:
            self.stdout.write(json.dumps({"chainPaused": paused, "networks": networks}))
            return
        if paused:
            self.stdout.write("Recording what happens on chain is paused (maintenance mode).\n")
        if not networks:
            self.stdout.write("No networks yet: add one with script/manage chain_network add.")
        for network in networks:
            self.stdout.write("\n".join([*_described(network), ""]))


def _described(network: dict[str, Any]) -> list[str]:
    off = "" if network["active"] else ", not active"
    lines = [f"Network {network['networkId']} ({network['name'] or 'without a name'}{off})"]
    if network["halted"]:
        lines.append(f"  HALTED      {network['halted']}")
        if network["haltCheckedAt"]:
            lines.append(f"  providers last compared at {network['haltCheckedAt']}")
    if network["trouble"]:
        lines.append(f"  trouble     {network['trouble']}")
    if network["advice"]:
        lines.append(f"  advice      {network['advice']}")
    lines.append(f"  last poll   {_last_poll(network)}")
    if network["checkpoint"] is None:
        lines.append("  nothing has been read yet")
    else:
        blocks = network["lag"]
        behind = "lag unknown" if blocks is None else f"{counted(blocks, 'block')} behind"
        lines += [
            f"  head        {_number(network['head'])}",
            f"  checkpoint  {_number(network['checkpoint'])}, {behind}",
            f"  final       {_number(network['finalized'])} (safe: {_number(network['safe'])})",
        ]
    contracts, sent = network["contracts"], network["transactions"]
    lines.append(
        f"  contracts   {contracts['listening']:,} of {contracts['registered']:,} listened to"
    )
    oldest = f", the oldest since {sent['oldestPending']}" if sent["oldestPending"] else ""
    lines.append(
        f"  transactions  {sent['pending']:,} pending{oldest}; {sent['stalled']:,} stalled"
    )
    lines.append(f"  outbox      up to {network['outbox']['newest']:,}")
    reorganised = network["lastReorganisation"]
    if reorganised:
        above = reorganised["above"]
        what = (
            "everything was reverted, with chain_resume --from-scratch,"
            if above is None
            else f"{counted(reorganised['depth'], 'block')} above {above:,}"
        )
        lines.append(f"  last reorganisation  {what} at {reorganised['seenAt']}")
    lines.append(f"  audit       {_audit(network)}")
    lines += [f"  verify      {line}" for line in _verification(network["verification"])]
    lines += [f"  provider    {_provider(provider)}" for provider in network["providers"]]
    if network["alone"]:
        lines.append(f"  alone       {network['alone']} is believed, but nothing becomes final")
    if not network["providers"]:
        lines.append("  provider    none: give the network an rpcEndpoint, or add providers")
    lines += [f"  backfill    {describe_backfill(row)}" for row in network["backfills"]]
    return lines


def _last_poll(network: dict[str, Any]) -> str:
    """When a provider last answered, and whether that is too long ago to know the head."""
    if network["lagSeconds"] is None:
        return "unknown: no successful poll yet"
    stale = "" if network["lag"] is not None else "; head and lag are unknown since then"
    return f"{network['lagSeconds']:,.0f} s ago{stale}"


def describe_backfill(row: dict[str, Any]) -> str:
    """One line about a backfill."""
    left = row["to"] - row["next"] + 1
    where = "done" if row["done"] else f"{counted(left, 'block')} left, at {row['next']:,}"
    trouble = f"; {row['trouble']}" if row["trouble"] else ""
    return (
        f"{row['contract'] or row['address']} {row['from']:,}-{row['to']:,}: {where},"
        f" {counted(row['events'], 'event')}{trouble}"
    )


def _audit(network: dict[str, Any]) -> str:
    audit = network["audit"]
    if audit is None:
        return "none yet"
    if "trouble" in audit:
        return f"{audit['at']}: {audit['trouble']}"
    kinds = ("missing", "superfluous", "different", "unclear")
    counts = ", ".join(f"{audit[kind]:,} {kind}" for kind in kinds if audit[kind])
    what = f"{counts}; {audit['mended']:,} mended" if counts else "nothing differed"
    return f"up to {_number(network['audited'])} at {audit['at']}: {what}"


def _verification(network: dict[str, Any]) -> list[str]:
    proved = [
        name
        for name, is_proved in (
            ("hashes of blocks", network["provesHashes"]),
            ("receipts", network["provesReceipts"]),
        )
        if is_proved
    ]
    what = "every block" if network["verify"] == "all" else "a sample"
    lines = [f"{what}; headers prove {' and '.join(proved) or 'nothing that was seen yet'}"]
    if network["contradictions"]:
        lines.append(
            f"{counted(network['contradictions'], 'contradiction')}, the last at"
            f" {network['contradictedAt']}: {network['lastContradiction']}"
        )
    if network["mended"]:
        lines.append(f"{counted(network['mended'], 'event')} corrected by audits")
    lines += [f"comparing {row['next']:,} to {row['to']:,} again" for row in network["recheck"]]
    return lines


def _provider(provider: dict[str, Any]) -> str:
    parts = [f"head {_number(provider['head'])}"]
    if provider["lag"]:
        parts.append(f"{counted(provider['lag'], 'block')} behind")
    if provider["latency"] is not None:
        parts.append(f"{provider['latency']:.0f} ms")
    if provider["failures"]:
        parts.append(f"{counted(provider['failures'], 'failure')} in a row")
    if provider["pausedUntil"]:
        parts.append(f"left alone until {provider['pausedUntil']}")
    if provider["trouble"]:
        is_over = not provider["failures"] and not provider["pausedUntil"]
        parts.append(
            f"last trouble: {provider['trouble']}" if is_over else str(provider["trouble"])
        )
    return f"{provider['name']}: {', '.join(parts)}"


def _number(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
