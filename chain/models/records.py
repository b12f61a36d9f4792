"""The tables of the chain app.

``Blockchain``, ``SmartContract``, ``Transaction``, ``ContractEvent`` and ``Identity`` are classes
as well (``chain.records.classes``): everybody may read them, only the master key and the service
write. Columns that ``chain.records.classes`` doesn't name are the service's own and in no answer.

Tables hold networks by their number, without foreign keys: what a network has left stays when the
network is taken away, and goes on when it comes back.
"""

from __future__ import annotations

from django.contrib.postgres.indexes import HashIndex
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import OrderBy

from chain.core.transactions.states import CONFIRMED, FAILED, INCLUDED, PENDING, SAFE, STALLED
from objects.definitions.columns import moment_column, number_column, text_column
from objects.definitions.models import ModelBackedObject

VERIFY_SAMPLE, VERIFY_ALL = "sample", "all"
"""How much of what providers say is checked (``chain.indexing.verification``)."""
SHOWN_EVENTS = "chain_contract_event_shown"
"""The view of the events that are in the chain as it is known now (see the first migration)."""


# In the order of a class's objects, where what is missing comes before everything else.
_HEIGHT = OrderBy(F("block_number"), nulls_first=True)
_TIME = OrderBy(F("timestamp"), nulls_first=True)


class Blockchain(ModelBackedObject):
    """A network. ``rpc_endpoint`` and ``wss_endpoint`` are handed to clients; the service asks its
    own ``Provider`` rows, and the public endpoint only if there are none."""

    network_id = number_column(unique=True)
    name = text_column()
    symbol = text_column()
    rpc_endpoint = text_column()
    wss_endpoint = text_column()
    code = text_column()
    explorer = text_column()
    # Settings, which only the master key and staff see. Milliseconds; blocks.
    active = models.BooleanField(default=True, db_default=True)
    confirmations = models.IntegerField(default=0, db_default=0, validators=[MinValueValidator(0)])
    poll_interval = models.IntegerField(
        default=2000, db_default=2000, validators=[MinValueValidator(1)]
    )
    finality_depth = models.IntegerField(null=True, blank=True, validators=[MinValueValidator(0)])
    verify = models.CharField(
        max_length=10,
        default=VERIFY_SAMPLE,
        db_default=VERIFY_SAMPLE,
        db_collation="C",
        choices=((VERIFY_SAMPLE, "a sample of blocks"), (VERIFY_ALL, "every block")),
    )

    class Meta:
        db_table = "chain_blockchain"
        ordering = ("network_id",)

    def __str__(self) -> str:
        return f"{self.name or 'network'} ({self.network_id})"


class Provider(models.Model):
    """One of the service's own endpoints of a network, and how it has been lately.

    ``url`` and ``socket_url`` (of a WebSocket) are encrypted, since providers put keys into them.
    ``requests_per_second``, ``batch_size`` (calls in one request) and ``largest_range`` (blocks of
    one ``eth_getLogs``) are limits that are known; null is to be found out.
    """

    network_id = models.BigIntegerField()
    name = models.CharField(max_length=64)
    url = models.TextField()
    socket_url = models.TextField(null=True, blank=True)
    weight = models.PositiveSmallIntegerField(default=10)
    requests_per_second = models.PositiveIntegerField(null=True, blank=True)
    batch_size = models.PositiveIntegerField(null=True, blank=True)
    largest_range = models.PositiveIntegerField(null=True, blank=True)
    active = models.BooleanField(default=True)
    # Written by the gateway.
    checked_at = moment_column()
    head = number_column()
    latency = models.FloatField(null=True, blank=True)  # milliseconds, a moving average
    failures = models.PositiveIntegerField(default=0)  # in a row
    paused_until = moment_column()
    trouble = models.TextField(null=True, blank=True)  # the last one, without addresses

    class Meta:
        db_table = "chain_provider"
        ordering = ("network_id", "-weight", "id")
        constraints = (
            models.UniqueConstraint(fields=("network_id", "name"), name="chain_provider_name"),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.network_id})"


class SmartContract(ModelBackedObject):
    """A contract whose events are stored while ``listening``, from ``start_block`` on. Without
    one, from the block that the contract was made in."""

    name = text_column()
    address = text_column()
    network_id = number_column()
    abi = models.JSONField(null=True, blank=True)
    start_block = number_column()
    listening = models.BooleanField(null=True, blank=True)
    # Names of roles whose members may call its methods; null is the usual ones.
    view_roles = models.JSONField(null=True, blank=True)
    call_roles = models.JSONField(null=True, blank=True)
    kind = text_column()
    # The service's own: addresses of the code that it runs, in lower case
    # (``chain.indexing.contracts``).
    behind = models.JSONField(null=True, blank=True)
    behind_looked_at = moment_column()

    class Meta:
        db_table = "chain_smart_contract"
        ordering = ("network_id", "name")
        constraints = (
            models.UniqueConstraint(fields=("network_id", "address"), name="chain_contract_place"),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"


class Transaction(ModelBackedObject):
    """A transaction that is monitored (docs/chain-transactions.md).

    In addition to the class's fields: where the transaction is (``block_hash``,
    ``transaction_index``), what
    it is (``from_address``, ``to``, ``nonce``), how final (``finality``), and what happened to it:
    ``reorg_count``, ``replaced_by``, ``replaced_suspected``, ``late_receipt``. ``pending_since`` is
    when it was last pending for the first time; null means ``created_at``.
    """

    hash = text_column()
    network_id = text_column()
    status = text_column()
    attempts = models.IntegerField(null=True, blank=True)
    last_checked = moment_column()
    block_number = number_column()
    gas_used = text_column()
    effective_gas_price = text_column()
    block_hash = text_column()
    transaction_index = number_column()
    from_address = text_column()
    to = text_column()
    nonce = number_column()
    finality = text_column()
    reorg_count = models.IntegerField(null=True, blank=True)
    pending_since = moment_column()
    replaced_by = text_column()
    replaced_suspected = models.BooleanField(null=True, blank=True)
    late_receipt = models.JSONField(null=True, blank=True)
    # The service's own: when it is checked next; how often in a row no node has answered; since
    # when and how often in a row no node has known the transaction at all.
    next_check_at = moment_column()
    failed_checks = models.IntegerField(default=0, db_default=0)
    missing_since = moment_column()
    missing_checks = models.IntegerField(default=0, db_default=0)

    class Meta:
        db_table = "chain_transaction"
        ordering = ("-created_at",)
        # No more indexes than these: every check of a pending transaction writes into all of them.
        constraints = (
            models.UniqueConstraint(fields=("hash",), name="chain_transaction_hash"),
            models.CheckConstraint(
                condition=Q(status__in=(PENDING, CONFIRMED, FAILED, STALLED)),
                name="chain_transaction_status",
            ),
        )
        indexes = (
            models.Index(
                fields=("network_id", "next_check_at"),
                condition=Q(next_check_at__isnull=False),
                name="chain_transaction_due",
            ),
            models.Index(
                fields=("network_id", "block_number"),
                condition=Q(finality__in=(INCLUDED, SAFE)),
                name="chain_transaction_unfinal",
            ),
            models.Index(fields=("created_at", "object_id"), name="chain_transaction_age"),
        )

    def __str__(self) -> str:
        return str(self.hash)


class ContractEvent(ModelBackedObject):
    """A log of a registered contract (docs/chain-events.md).

    Its identity is network, block and index in the block; the height stands first in the key so
    that new rows lie together. ``ordinal`` counts the contract's logs in the transaction, which
    together with the hash is the same when the transaction comes again in another block. What a
    reorganisation has removed is not ``canonical``; only the view ``SHOWN_EVENTS`` is read by
    clients. An event that couldn't be decoded has no name.
    """

    network_id = text_column()
    contract_name = text_column()
    event_name = text_column()
    address = text_column()
    transaction_hash = text_column()
    block_number = number_column()
    block_hash = text_column()
    log_index = number_column()
    transaction_index = number_column()
    ordinal = number_column()
    args = models.JSONField(null=True, blank=True)
    timestamp = moment_column()
    canonical = models.BooleanField(default=True, db_default=True)
    block_timestamp = moment_column()  # null in rows of before it was stored (``chain_reindex``)
    token_transfer = models.BooleanField(null=True, blank=True)  # see ``EventRow``; null as well

    class Meta:
        db_table = "chain_contract_event"
        ordering = ("network_id", "block_number", "log_index")
        constraints = (
            models.UniqueConstraint(
                F("network_id"),
                _HEIGHT,
                F("log_index"),
                F("block_hash"),
                name="chain_contract_event_identity",
            ),
        )
        # What clients ask for, the newest first, and the order of those who name none. Each of
        # these costs up to a tenth of storing a row.
        indexes = (
            models.Index(fields=("created_at",), name="chain_contract_event_age"),
            models.Index(_TIME, name="chain_contract_event_time"),
            models.Index(_HEIGHT, name="chain_contract_event_height"),
            models.Index(F("contract_name"), _HEIGHT, name="chain_contract_event_contract"),
            models.Index(F("event_name"), _HEIGHT, name="chain_contract_event_name"),
            models.Index(F("address"), _HEIGHT, name="chain_contract_event_address"),
            HashIndex(fields=("transaction_hash",), name="chain_contract_event_sent"),
            models.Index(
                fields=("network_id", "block_number"),
                condition=Q(canonical=False),
                name="chain_contract_event_removed",
            ),
        )

    def __str__(self) -> str:
        return f"{self.contract_name} {self.event_name} {self.block_number}/{self.log_index}"


class Identity(ModelBackedObject):
    """The wallet of a user."""

    wallet_address = text_column(unique=True)
    user = text_column()

    class Meta:
        db_table = "chain_identity"
        verbose_name_plural = "identities"

    def __str__(self) -> str:
        return str(self.wallet_address)
