"""The networks: how far each is read, how far behind, and how its providers are."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Count
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from backend.site.model_admin import ModelAdmin, page, render
from chain import rpc
from chain.core.transactions.states import PENDING, STALLED
from chain.indexing.head.halts import advice
from chain.models import (
    VERIFY_ALL,
    Backfill,
    Blockchain,
    Cursor,
    Recheck,
    Reorganisation,
    Transaction,
)
from chain.networks.lag import UNKNOWN, lags
from chain.records.rules import forget_proofs
from objects.database import maintenance

_VIEW = "chain.view_blockchain"
_MOST = 200
_KNOBS = ("active", "poll_interval", "confirmations", "finality_depth", "verify")
_LABELS = {
    "active": "Synced",
    "poll_interval": "Poll interval (milliseconds)",
    "confirmations": "Confirmations (blocks)",
    "finality_depth": "Finality depth (blocks)",
}
_HELP = {
    "active": "Whether its blocks are indexed. A paused network continues where it was; everything"
    " stored stays.",
    "poll_interval": "Between two polls of the head; 2000 by default, at least a second in effect."
    " While a subscription to new heads works, polls are 30 s apart.",
    "confirmations": "Blocks that have to be on top of a block before its events are stored; 0 by"
    " default.",
    "finality_depth": "Blocks on top of a block that make it final. Empty: the node's finalized"
    " block decides, or the network's usual depth.",
    "verify": "How much of what providers return is checked against the headers.",
}


@page(
    "networks/",
    name="networks",
    permission=_VIEW,
    title="Networks",
    section="Chain",
    icon="hub",
    position=10,
)
def networks(request: HttpRequest) -> HttpResponseBase:
    """All networks with lag, pending transactions, providers, and what is wrong."""
    blockchains = [*Blockchain.objects.filter(network_id__isnull=False)[:_MOST]]
    cursors = Cursor.objects.in_bulk([blockchain.network_id for blockchain in blockchains])
    lag_by_network = lags()
    counted = Transaction.objects.filter(status__in=(PENDING, STALLED))
    waiting = {
        (row["network_id"], row["status"]): row["rows"]
        for row in counted.values("network_id", "status").annotate(rows=Count("object_id"))
    }
    behind = _counts(Backfill.objects.filter(done_at=None))
    aside = Backfill.objects.filter(done_at=None, unavailable=True)
    first_of_each = aside.order_by("network_id", "pk").distinct("network_id")
    unavailable = dict(first_of_each.values_list("network_id", "trouble"))
    reorganised = _counts(Reorganisation.objects.all())
    shown = [
        {
            "network": blockchain,
            "cursor": cursors.get(blockchain.network_id) or Cursor(),
            "lag": lag_by_network.get(blockchain.network_id or 0, UNKNOWN),
            "advice": advice(blockchain.network_id or 0),
            "rechecks": Recheck.objects.filter(network_id=blockchain.network_id).count(),
            "pending": waiting.get((str(blockchain.network_id), PENDING), 0),
            "stalled": waiting.get((str(blockchain.network_id), STALLED), 0),
            "backfills": behind.get(blockchain.network_id, 0),
            "unavailable": unavailable.get(blockchain.network_id),
            "reorganisations": reorganised.get(blockchain.network_id, 0),
            "providers": rpc.health(blockchain.network_id),
        }
        for blockchain in blockchains
    ]
    return render(
        request,
        "admin/chain/networks.html",
        "Networks",
        networks=shown,
        now=timezone.now(),
        is_paused=maintenance.is_chain_paused(),
        may_change=request.user.has_perm("chain.change_blockchain"),
        may_see_providers=request.user.has_perm("chain.view_provider"),
    )


def _counts(rows: Any) -> dict[Any, int]:
    counted = rows.order_by().values("network_id").annotate(rows=Count("id"))
    return {row["network_id"]: row["rows"] for row in counted}


@admin.register(Blockchain)
class BlockchainAdmin(ModelAdmin):
    """How the service syncs a network. The same settings are fields of the class Blockchain for
    the master key; its public fields are edited with the other objects."""

    section = None
    list_display = ("__str__", *_KNOBS)
    fields = ("network_id", "name", *_KNOBS)
    readonly_fields = ("network_id", "name")
    actions = None

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kw: Any
    ) -> Any:
        kw |= {"labels": _LABELS, "help_texts": _HELP}
        return super().get_form(request, obj, change=change, **kw)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        maintenance.check()
        # Clients may change the rest of the row meanwhile.
        with transaction.atomic():
            obj.save(update_fields=_KNOBS)
            if "verify" in form.changed_data and obj.verify != VERIFY_ALL:
                forget_proofs(obj.network_id)
