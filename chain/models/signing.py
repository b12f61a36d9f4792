"""The tables of what the service signs: accounts with their nonces, transactions, wallets."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class SigningAccount(models.Model):
    """An account that the service sends from on one network. Its row's lock serialises nonces."""

    network_id = models.BigIntegerField()
    address = models.TextField(db_collation="C")
    next_nonce = models.BigIntegerField(null=True, blank=True)  # null: to be asked of the network

    class Meta:
        db_table = "chain_signing_account"
        constraints = (
            models.UniqueConstraint(
                fields=("network_id", "address"), name="chain_signing_account_address"
            ),
        )

    def __str__(self) -> str:
        return f"{self.address} ({self.network_id})"


class Sending(models.Model):
    """A signed transaction, stored before it is sent: a crash in between loses nothing.

    Rows of one account and nonce are replacements of each other; one of them is mined at last.
    ``state``: *signed* until a node has taken it, then *sent*, *mined* when it is in a block and
    *final* when that can't change; *replaced* if another one of its nonce has its place, *refused*
    if no node takes it (the nonce is free again), *lost* if the account has used the nonce for
    something that the service doesn't know.
    """

    network_id = models.BigIntegerField()
    account = models.TextField(db_collation="C")
    nonce = models.BigIntegerField()
    hash = models.TextField(unique=True, db_collation="C")
    raw = models.TextField()
    to = models.TextField(null=True, blank=True, db_collation="C")
    value = models.TextField(default="0")  # wei
    data = models.TextField(default="0x")
    gas = models.BigIntegerField()
    max_fee = models.TextField()  # wei; of older networks the gas price
    priority_fee = models.TextField(null=True, blank=True)  # wei
    purpose = models.TextField(blank=True, default="")  # addDiamondFacet, callMethod, …
    state = models.TextField(default="signed")
    created_at = models.DateTimeField(db_default=Now())  # by the database's clock
    sent_at = models.DateTimeField(null=True, blank=True)  # when a node took it first
    block_number = models.BigIntegerField(null=True, blank=True)
    mined_at = models.DateTimeField(null=True, blank=True)  # when it was first seen in a block
    passed_at = models.DateTimeField(
        null=True, blank=True
    )  # since when its nonce is used otherwise
    trouble = models.TextField(null=True, blank=True)

    class Meta:
        db_table = "chain_sending"
        ordering = ("-created_at",)
        indexes = (
            models.Index(fields=("network_id", "account", "nonce"), name="chain_sending_nonce"),
            models.Index(
                fields=("network_id", "state"),
                condition=Q(state__in=("signed", "sent", "mined")),
                name="chain_sending_open",
            ),
        )

    def __str__(self) -> str:
        return self.hash


class Wallet(models.Model):
    """A user's wallet. ``key`` is encrypted and only there where the built-in custodian keeps it;
    ``reference`` is what another custodian calls the wallet."""

    wallet_id = models.TextField(unique=True, db_collation="C")
    user_id = models.TextField(db_collation="C")
    network = models.TextField()
    address = models.TextField(db_collation="C")
    custodian = models.TextField()
    reference = models.TextField(null=True, blank=True)
    key = models.TextField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "chain_wallet"
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("user_id", "network", "custodian"), name="chain_wallet_one_each"
            ),
        )
        # For the search of staff.
        indexes = (models.Index(fields=("address",), name="chain_wallet_address"),)

    def __str__(self) -> str:
        return f"{self.address} ({self.network})"
