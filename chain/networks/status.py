"""How the networks are that are followed, for operators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min

from chain import rpc
from chain.core.transactions.states import PENDING, STALLED
from chain.indexing.head.halts import advice
from chain.models import (
    Backfill,
    Blockchain,
    Cursor,
    OutboxEntry,
    Recheck,
    Reorganisation,
    SmartContract,
    Transaction,
)
from chain.networks.lag import UNKNOWN, lags
from chain.rpc import ProviderHealth
from objects.core.values import wire_time


def networks(network_id: int | None = None) -> list[dict[str, Any]]:
    """All of them or one, as JSON. Secrets aren't in it: providers go by their names."""
    blockchains = Blockchain.objects.filter(network_id__isnull=False).order_by("network_id")
    if network_id is not None:
        blockchains = blockchains.filter(network_id=network_id)
    return [_network(blockchain) for blockchain in blockchains]


def _network(network: Blockchain) -> dict[str, Any]:
    network_id = int(network.network_id or 0)
    cursor = Cursor.objects.filter(pk=network_id).first() or Cursor(network_id=network_id)
    lag = lags(network_id).get(network_id, UNKNOWN)
    contracts = SmartContract.objects.filter(network_id=network_id)
    providers = rpc.health(network_id)
    return {
        "networkId": network_id,
        "name": network.name,
        "active": network.active,
        "head": cursor.head,
        "checkpoint": cursor.number,
        "checkpointHash": cursor.hash,
        "lag": lag.blocks,
        "lagSeconds": _seconds(lag.seconds),
        "safe": cursor.safe,
        "finalized": cursor.finalized,
        "lookedAt": _moment(cursor.looked_at),
        "movedAt": _moment(cursor.moved_at),
        "secondsSinceLook": _seconds(lag.seconds),
        "trouble": cursor.trouble,
        "advice": advice(network_id),
        "halted": cursor.halted,
        "haltCheckedAt": _moment(cursor.halt_checked_at) if cursor.halted else None,
        "contracts": {
            "registered": contracts.count(),
            "listening": contracts.filter(listening=True).count(),
        },
        "transactions": _transactions(network_id),
        "providers": [_provider(provider) for provider in providers],
        "alone": _alone(providers),
        "backfills": backfills(network_id),
        "outbox": _outbox(network_id, cursor.outbox),
        "lastReorganisation": _reorganisation(network_id),
        "audited": cursor.audited,
        "audit": cursor.audit,
        "verification": {
            "verify": network.verify,
            "provesHashes": cursor.proves_hashes,
            "provesReceipts": cursor.proves_receipts,
            "hashesUntil": cursor.hashes_until,
            "contradictions": cursor.contradictions,
            "lastContradiction": cursor.contradiction,
            "contradictedAt": _moment(cursor.contradicted_at),
            "auditedAt": _moment(cursor.audited_at),
            "mended": cursor.mended,
            "recheck": [
                {"kind": row.kind, "next": row.next_block, "to": row.last_block}
                for row in Recheck.objects.filter(network_id=network_id).order_by("kind")
            ],
        },
    }


def backfills(network_id: int, ids: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """The backfills that aren't over, or those with these ids."""
    rows = Backfill.objects.filter(network_id=network_id).order_by("pk")
    rows = rows.filter(done_at=None) if ids is None else rows.filter(pk__in=ids)
    contracts = SmartContract.objects.filter(network_id=network_id)
    names = {address: name for address, name in contracts.values_list("address", "name") if address}
    return [
        {
            "id": row.pk,
            "contract": names.get(row.address),
            "address": row.address,
            "from": row.first_block,
            "to": row.last_block,
            "next": row.next_block,
            "events": row.events,
            "asked": row.asked,
            "unavailable": row.unavailable,
            "done": row.done_at is not None,
            "trouble": row.trouble,
            "pausedUntil": _moment(row.paused_until),
        }
        for row in rows
    ]


def _transactions(network_id: int) -> dict[str, Any]:
    transactions = Transaction.objects.filter(
        network_id=str(network_id), status__in=(PENDING, STALLED)
    )
    counts = {
        row["status"]: row["rows"] for row in transactions.values("status").annotate(rows=_ROWS)
    }
    oldest = transactions.filter(status=PENDING).aggregate(oldest=Min("created_at"))["oldest"]
    return {
        "pending": counts.get(PENDING, 0),
        "stalled": counts.get(STALLED, 0),
        "oldestPending": _moment(oldest),
    }


_ROWS = Count("object_id")


def _alone(providers: Sequence[ProviderHealth]) -> str | None:
    """The only one of several providers that is in use: no other one can confirm it."""
    names = [provider.name for provider in providers if provider.paused_until is None]
    return names[0] if len(names) == 1 < len(providers) else None


def _provider(provider: ProviderHealth) -> dict[str, Any]:
    return {
        "name": provider.name,
        "source": provider.source,
        "weight": provider.weight,
        "head": provider.head,
        "lag": provider.lag,
        "latency": None if provider.latency is None else round(provider.latency, 1),
        "failures": provider.failures,
        "pausedUntil": _moment(provider.paused_until),
        "trouble": provider.trouble,
        "checkedAt": _moment(provider.checked_at),
    }


def _outbox(network_id: int, newest: int) -> dict[str, Any]:
    bounds = OutboxEntry.objects.filter(network_id=network_id).aggregate(
        oldest=Min("seq"), told=Max("created_at")
    )
    return {"newest": newest, "oldest": bounds["oldest"], "toldAt": _moment(bounds["told"])}


def _reorganisation(network_id: int) -> dict[str, Any] | None:
    latest = Reorganisation.objects.filter(network_id=network_id).order_by("-seen_at").first()
    if latest is None:
        return None
    return {
        "seenAt": _moment(latest.seen_at),
        "above": None if latest.fork_number < 0 else latest.fork_number,
        "depth": latest.depth,
        "removedEvents": latest.removed_events,
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else wire_time(moment)


def _seconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
