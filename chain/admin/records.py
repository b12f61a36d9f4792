"""Transactions, events, and what happened to the chain: to look at."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from unfold.decorators import display

from backend.site.model_admin import ReadOnlyModelAdmin
from chain.admin.choices import CanonicalFilter, NetworkFilter
from chain.core.transactions.states import CONFIRMED, FAILED, PENDING, STALLED
from chain.models import Backfill, ContractEvent, Identity, Reorganisation, Transaction
from chain.models.finality_sql import OF_EVENT
from chain.models.signing import Sending

_SHOWN = 160  # characters of arguments in the list


class _Records(ReadOnlyModelAdmin):
    """Rows with all fields of ``shown``, and no form."""

    section = "Chain"
    shown: tuple[str, ...] = ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.shown

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.shown


@admin.register(Transaction)
class TransactionAdmin(_Records):
    """The transactions that are followed, the latest first."""

    icon = "receipt_long"
    position = 30
    list_display = (
        *("hash", "network_id", "shown_status", "attempts", "block_number", "finality"),
        *("reorg_count", "created_at", "last_checked"),
    )
    list_filter = (NetworkFilter, "status")
    search_fields = ("hash__exact", "object_id__exact", "from_address__exact")
    search_help_text = "a hash, an object id, a sender"
    shown = (
        *("object_id", "hash", "network_id", "status", "attempts", "created_at", "last_checked"),
        *("block_number", "block_hash", "transaction_index", "gas_used", "effective_gas_price"),
        *("from_address", "to", "nonce", "finality", "reorg_count", "pending_since"),
        *("replaced_by", "replaced_suspected", "late_receipt", "next_check_at", "updated_at"),
    )

    @display(
        description="status",
        label={PENDING: "info", CONFIRMED: "success", FAILED: "danger", STALLED: "warning"},
    )
    def shown_status(self, row: Transaction) -> str:
        return row.status or ""


@admin.register(ContractEvent)
class ContractEventAdmin(_Records):
    """Events with their arguments, those too that a reorganisation removed."""

    icon = "bolt"
    position = 40
    list_display = (
        *("block_number", "log_index", "network_id", "contract_name", "event_name"),
        *("shown_args", "transaction_hash", "block_timestamp", "shown_finality", "stored_at"),
    )
    list_filter = (NetworkFilter, CanonicalFilter)
    search_fields = ("transaction_hash__exact", "object_id__exact", "address__exact")
    search_help_text = "a transaction's hash, a contract's address, an object id"
    # As the index on the height has it.
    ordering = (F("block_number").desc(nulls_last=True), "-log_index")
    shown = (
        *("object_id", "network_id", "contract_name", "event_name", "address", "args"),
        *("block_number", "block_hash", "log_index", "transaction_hash", "transaction_index"),
        *(
            "block_timestamp",
            "shown_finality",
            "stored_at",
            "canonical",
            "created_at",
            "updated_at",
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        finality = RawSQL(OF_EVENT.format(row="chain_contract_event"), (), output_field=TextField())
        return super().get_queryset(request).annotate(finality_now=finality)

    @admin.display(description="finality")
    def shown_finality(self, row: Any) -> str:
        return (row.finality_now or "-") if row.canonical else "removed"

    @admin.display(description="stored at", ordering="timestamp")
    def stored_at(self, row: ContractEvent) -> Any:
        return row.timestamp

    @admin.display(description="arguments")
    def shown_args(self, row: ContractEvent) -> str:
        text = json.dumps(row.args, ensure_ascii=False)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@admin.register(Reorganisation)
class ReorganisationAdmin(_Records):
    """Reorganisations that were seen."""

    icon = "call_split"
    position = 50
    list_display = (
        *("seen_at", "network_id", "depth", "shown_fork", "removed_events", "transactions"),
    )
    list_filter = (NetworkFilter,)
    shown = (
        *("network_id", "seen_at", "depth", "shown_fork", "fork_hash", "old_number", "old_hash"),
        *("removed_events", "transactions"),
    )

    @admin.display(description="last common block", ordering="fork_number")
    def shown_fork(self, row: Reorganisation) -> str:
        return "none: everything was reverted" if row.fork_number < 0 else str(row.fork_number)


@admin.register(Backfill)
class BackfillAdmin(_Records):
    """What is read of the past, and how far it is."""

    icon = "history"
    position = 51
    list_display = (
        *("network_id", "address", "first_block", "next_block", "last_block", "events"),
        *("done_at", "trouble"),
    )
    list_filter = (NetworkFilter,)
    search_fields = ("address__exact",)
    shown = (*list_display, "step", "created_at")


@admin.register(Sending)
class SendingAdmin(_Records):
    """What the service has signed and sent. The signed bytes themselves aren't shown."""

    icon = "send"
    position = 60
    sidebar_title = "Sent transactions"
    list_display = (
        *("created_at", "network_id", "account", "nonce", "purpose", "state", "hash", "trouble"),
    )
    list_filter = (NetworkFilter, "state")
    search_fields = ("hash__exact", "account__exact")
    shown = (
        *("network_id", "account", "nonce", "purpose", "state", "trouble", "hash", "to", "value"),
        *("data", "gas", "max_fee", "priority_fee", "created_at", "sent_at"),
    )


@admin.register(Identity)
class IdentityAdmin(_Records):
    """Wallets of users."""

    icon = "badge"
    position = 70
    list_display = ("wallet_address", "user", "created_at")
    search_fields = ("wallet_address__exact", "user__exact")
    shown = ("object_id", "wallet_address", "user", "data", "created_at", "updated_at")
