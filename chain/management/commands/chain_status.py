"""``manage.py chain_status``: how the networks are."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chain.networks import status
from objects.database import maintenance


class Command(BaseCommand):
    help = (
        "How far each network has been read, how its providers are, what is pending, and what is"
        " wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("network", type=int, nargs="?", metavar="NETWORK", help="only this one")
        parser.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        found = status.networks(options["network"])
        if options["network"] is not None and not found:
            raise CommandError(f"There is no network {options['network']}.")
        paused = maintenance.is_chain_paused()
        if options["json"]:
            self.stdout.write(json.dumps({"chainPaused": paused, "networks": found}))
            return
        if paused:
            self.stdout.write("Recording what happens on chain is paused (maintenance mode).\n")
        if not found:
            self.stdout.write("No networks yet: add one with script/manage chain_network add.")
        for one in found:
            self.stdout.write("\n".join([*_described(one), ""]))


def _described(one: dict[str, Any]) -> list[str]:
    off = "" if one["active"] else ", not active"
    lines = [f"Network {one['networkId']} ({one['name'] or 'without a name'}{off})"]
    if one["halted"]:
        lines.append(f"  HALTED      {one['halted']}")
        if one["haltCheckedAt"]:
            lines.append(f"  providers last compared at {one['haltCheckedAt']}")
    if one["trouble"]:
        lines.append(f"  trouble     {one['trouble']}")
    if one["advice"]:
        lines.append(f"  advice      {one['advice']}")
    lines.append(f"  last poll   {_last_poll(one)}")
    if one["checkpoint"] is None:
        lines.append("  nothing has been read yet")
    else:
        blocks = one["lag"]
        behind = "lag unknown" if blocks is None else f"{_many(blocks, 'block')} behind"
        lines += [
            f"  head        {_number(one['head'])}",
            f"  checkpoint  {_number(one['checkpoint'])}, {behind}",
            f"  final       {_number(one['finalized'])} (safe: {_number(one['safe'])})",
        ]
    contracts, sent = one["contracts"], one["transactions"]
    lines.append(
        f"  contracts   {contracts['listening']:,} of {contracts['registered']:,} listened to"
    )
    oldest = f", the oldest since {sent['oldestPending']}" if sent["oldestPending"] else ""
    lines.append(
        f"  transactions  {sent['pending']:,} pending{oldest}; {sent['stalled']:,} stalled"
    )
    lines.append(f"  outbox      up to {one['outbox']['newest']:,}")
    reorganised = one["lastReorganisation"]
    if reorganised:
        above = reorganised["above"]
        what = (
            "everything was reverted, with chain_resume --anew,"
            if above is None
            else f"{_many(reorganised['depth'], 'block')} above {above:,}"
        )
        lines.append(f"  last reorganisation  {what} at {reorganised['seenAt']}")
    lines.append(f"  audit       {_audit(one)}")
    lines += [f"  verify      {line}" for line in _verification(one["verification"])]
    lines += [f"  provider    {_provider(provider)}" for provider in one["providers"]]
    if one["alone"]:
        lines.append(f"  alone       {one['alone']} is believed, but nothing becomes final")
    if not one["providers"]:
        lines.append("  provider    none: give the network an rpcEndpoint, or add providers")
    lines += [f"  backfill    {describe_backfill(row)}" for row in one["backfills"]]
    return lines


def _last_poll(one: dict[str, Any]) -> str:
    """When a provider last answered, and whether that is too long ago to know the head."""
    if one["lagSeconds"] is None:
        return "unknown: no successful poll yet"
    stale = "" if one["lag"] is not None else "; head and lag are unknown since then"
    return f"{one['lagSeconds']:,.0f} s ago{stale}"


def describe_backfill(row: dict[str, Any]) -> str:
    """One line about a backfill."""
    left = row["to"] - row["next"] + 1
    where = "done" if row["done"] else f"{_many(left, 'block')} left, at {row['next']:,}"
    trouble = f"; {row['trouble']}" if row["trouble"] else ""
    return (
        f"{row['contract'] or row['address']} {row['from']:,}-{row['to']:,}: {where},"
        f" {_many(row['events'], 'event')}{trouble}"
    )


def _audit(one: dict[str, Any]) -> str:
    audit = one["audit"]
    if audit is None:
        return "none yet"
    if "trouble" in audit:
        return f"{audit['at']}: {audit['trouble']}"
    kinds = ("missing", "superfluous", "different", "unclear")
    found = ", ".join(f"{audit[kind]:,} {kind}" for kind in kinds if audit[kind])
    what = f"{found}; {audit['mended']:,} mended" if found else "nothing differed"
    return f"up to {_number(one['audited'])} at {audit['at']}: {what}"


def _verification(one: dict[str, Any]) -> list[str]:
    proved = [
        name
        for name, is_proved in (
            ("hashes of blocks", one["provesHashes"]),
            ("receipts", one["provesReceipts"]),
        )
        if is_proved
    ]
    what = "every block" if one["verify"] == "all" else "a sample"
    lines = [f"{what}; headers prove {' and '.join(proved) or 'nothing that was seen yet'}"]
    if one["contradictions"]:
        lines.append(
            f"{_many(one['contradictions'], 'contradiction')}, the last at"
            f" {one['contradictedAt']}: {one['lastContradiction']}"
        )
    if one["mended"]:
        lines.append(f"{_many(one['mended'], 'event')} corrected by audits")
    lines += [f"comparing {row['next']:,} to {row['to']:,} again" for row in one["recheck"]]
    return lines


def _provider(one: dict[str, Any]) -> str:
    parts = [f"head {_number(one['head'])}"]
    if one["lag"]:
        parts.append(f"{_many(one['lag'], 'block')} behind")
    if one["latency"] is not None:
        parts.append(f"{one['latency']:.0f} ms")
    if one["failures"]:
        parts.append(f"{_many(one['failures'], 'failure')} in a row")
    if one["pausedUntil"]:
        parts.append(f"left alone until {one['pausedUntil']}")
    if one["trouble"]:
        is_over = not one["failures"] and not one["pausedUntil"]
        parts.append(f"last trouble: {one['trouble']}" if is_over else str(one["trouble"]))
    return f"{one['name']}: {', '.join(parts)}"


def _number(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
