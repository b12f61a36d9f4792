"""The tables of indexing: cursors, backfills, coverage, the outbox."""

from __future__ import annotations

from typing import Final

from django.contrib.postgres.indexes import HashIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Cast, Now

from objects.database.fresh_rows import ANY_NUMBER
from objects.definitions.columns import moment_column, number_column


class Block(models.Model):
    """A header that has been seen, above what is final: the chain that the events belong to."""

    pk = models.CompositePrimaryKey("network_id", "hash")
    network_id = models.BigIntegerField()
    hash = models.TextField(db_collation="C")
    number = models.BigIntegerField()
    parent_hash = models.TextField(db_collation="C")
    timestamp = models.BigIntegerField()  # seconds since the epoch
    canonical = models.BooleanField(default=True)

    class Meta:
        db_table = "chain_block"
        constraints = (
            models.UniqueConstraint(
                fields=("network_id", "number"),
                condition=Q(canonical=True),
                name="chain_block_canonical",
            ),
        )

    def __str__(self) -> str:
        return f"{self.network_id}: {self.number}"


RESET_PROOFS: Final = {"proves_hashes": False, "hashes_until": None, "proves_receipts": False}
"""Values of a cursor whose network's headers have proved nothing."""

_NULL_BEFORE_READING: Final = (
    *("number", "hash", "began_at", "head", "safe", "finalized", "audited", "audited_before"),
    *("audited_at", "audit", "halted", "halt_checked_at", "trouble", "next_poll_at"),
    *("contradiction", "contradicted_at"),
)
RESET_CURSOR: Final = {
    **dict.fromkeys(_NULL_BEFORE_READING),
    "contradictions": 0,
    "mended": 0,
    **RESET_PROOFS,
}
"""Values of the cursor of a network of which nothing was read."""


class Cursor(models.Model):
    """How far a network's chain has been read. A process that stores blocks moves it from
    where it was, under its lock; one that finds it elsewhere drops what it has read.

    ``outbox`` is the number of the last row of the outbox, ``contracts`` grows with each change of
    the network's contracts, and ``planned`` is its value for which backfills were planned.
    ``audited`` is the height up to which everything has been compared with the chain again, and
    ``audit`` says what the last comparison has found.
    ``halted`` says why nothing is read any more, and ``halt_checked_at`` is when the providers
    were last compared with the stored chain because of that, to resume automatically.
    """

    network_id = models.BigIntegerField(primary_key=True)
    number = models.BigIntegerField(null=True, blank=True)  # null until the network has answered
    hash = models.TextField(null=True, blank=True, db_collation="C")
    began_at = models.BigIntegerField(null=True, blank=True)  # the height at which it was made
    outbox = models.BigIntegerField(default=0, db_default=0)
    contracts = models.BigIntegerField(default=0, db_default=0)
    planned = models.BigIntegerField(default=0, db_default=0)
    audited = number_column()
    audit = models.JSONField(null=True, blank=True)
    polled_at = moment_column()  # when the last poll was sent
    next_poll_at = moment_column()
    # Of the last look at the network.
    head = number_column()
    safe = number_column()
    finalized = number_column()
    looked_at = moment_column()  # last successful poll, see chain.networks.lag
    moved_at = moment_column()  # when the cursor last moved
    trouble = models.TextField(null=True, blank=True)
    halted = models.TextField(null=True, blank=True)
    halt_checked_at = moment_column()
    # What ``chain.indexing.verification`` has learned and found.
    proves_hashes = models.BooleanField(default=False, db_default=False)
    hashes_until = number_column()  # no header above has a hash that can be computed
    proves_receipts = models.BooleanField(default=False, db_default=False)
    contradictions = models.BigIntegerField(default=0, db_default=0)
    contradiction = models.TextField(null=True, blank=True)  # the last one
    contradicted_at = moment_column()
    audited_before = number_column()  # ``audited`` before the last audit
    audited_at = moment_column()  # when an audit last came to its end
    mended = models.BigIntegerField(default=0, db_default=0)  # events, by audits

    class Meta:
        db_table = "chain_cursor"
        # The text that events have, for joins with them (``chain.models.finality_sql.is_one_of``).
        constraints = (
            models.UniqueConstraint(
                Cast("network_id", models.TextField()), name="chain_cursor_text"
            ),
        )

    def __str__(self) -> str:
        return f"{self.network_id} at {self.number}"


class Backfill(models.Model):
    """Blocks at or below the cursor whose logs of one contract are still to be read, from
    ``next_block`` to ``last_block``. Over when ``done_at`` is set: done, or closed before its end
    since the contract isn't listened to any more.

    ``seeking`` rows begin with finding the block in which the contract was made. ``asked`` ones
    read what an operator wants to be read again; others what is missing. No provider has the blocks
    of ``unavailable`` ones, as its ``trouble`` says.
    """

    network_id = models.BigIntegerField()
    address = models.TextField(db_collation="C")
    first_block = models.BigIntegerField()
    last_block = models.BigIntegerField()
    next_block = models.BigIntegerField()
    seeking = models.BooleanField(default=False, db_default=False)
    asked = models.BooleanField(default=False, db_default=False)
    unavailable = models.BooleanField(default=False, db_default=False)
    step = models.IntegerField(default=0, db_default=0)  # blocks asked for at once; 0 is unknown
    events = models.BigIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    done_at = moment_column()
    trouble = models.TextField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, db_default=0)  # in a row
    paused_until = moment_column()

    class Meta:
        db_table = "chain_backfill"
        ordering = ("-created_at",)
        indexes = (
            models.Index(
                fields=("network_id", "next_block"),
                condition=Q(done_at__isnull=True),
                name="chain_backfill_open",
            ),
        )

    def __str__(self) -> str:
        return f"{self.network_id}: {self.address} {self.first_block}-{self.last_block}"


class Coverage(models.Model):
    """Which blocks have been read for a contract, apart from those of its open backfills.

    ``spans`` lists pairs of first and last blocks. Blocks above ``followed_from``, if that isn't
    null, are read as they come. Changed under the lock of the network's cursor only.
    """

    network_id = models.BigIntegerField()
    address = models.TextField(db_collation="C")
    spans = models.JSONField(default=list)
    followed_from = number_column()

    class Meta:
        db_table = "chain_coverage"
        constraints = (
            models.UniqueConstraint(fields=("network_id", "address"), name="chain_coverage_place"),
        )

    def __str__(self) -> str:
        return f"{self.network_id}: {self.address} {self.spans}"


class OutboxEntry(models.Model):
    """Notifications for subscribers, numbered per network without gaps in the order of commits.

    ``place`` is of the log in its transaction (hash, address, ordinal), whatever the block: by it
    is found what was told of the same log before. ``finality`` is that of a ``removed`` event when
    it was removed; null in rows of releases before it was noted.
    """

    pk = models.CompositePrimaryKey("network_id", "seq")
    network_id = models.BigIntegerField()
    seq = models.BigIntegerField()
    op = models.CharField(max_length=8)  # added, removed
    event_id = models.TextField(db_collation="C")
    place = models.UUIDField(null=True)
    finality = models.CharField(max_length=8, null=True)  # latest, safe, final
    payload = models.TextField()  # JSON of the event, as clients read it
    created_at = models.DateTimeField()

    class Meta:
        db_table = "chain_outbox"
        indexes = (
            models.Index(fields=("created_at",), name="chain_outbox_age"),
            HashIndex(fields=("place",), name="chain_outbox_place"),
        )

    def __str__(self) -> str:
        return f"{self.network_id}: {self.seq} {self.op}"


class Recheck(models.Model):
    """Blocks to be compared with the chain by their receipts, since a provider that contradicted
    itself gave their events: ``RECENT`` ones, which were read at the head, or ``HISTORY``."""

    RECENT, HISTORY = "recent", "history"

    network_id = models.BigIntegerField()
    kind = models.CharField(max_length=10)
    next_block = models.BigIntegerField()
    last_block = models.BigIntegerField()
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "chain_recheck"
        constraints = (
            models.UniqueConstraint(fields=("network_id", "kind"), name="chain_recheck_kind"),
        )

    def __str__(self) -> str:
        return f"{self.network_id} {self.kind}: {self.next_block} to {self.last_block}"


class ProvedBlock(models.Model):
    """A final block that belongs to the chain that is followed, as the headers between it and a
    stored one prove; see ``chain.indexing.history.proofs``."""

    pk = models.CompositePrimaryKey("network_id", "number")
    network_id = models.BigIntegerField()
    number = models.BigIntegerField()
    hash = models.TextField(db_collation="C")

    class Meta:
        db_table = "chain_proved_block"

    def __str__(self) -> str:
        return f"{self.network_id}: {self.number}"


class OutboxEpoch(models.Model):
    """What the numbers of the outbox belong to: one row, which a restored backup gives another
    value, since its numbers are given again for other events."""

    fresh_rows = ANY_NUMBER

    value = models.UUIDField(primary_key=True)

    class Meta:
        db_table = "chain_outbox_epoch"

    def __str__(self) -> str:
        return str(self.value)


class Reorganisation(models.Model):
    """A reorganisation that has been seen, for operators."""

    network_id = models.BigIntegerField()
    fork_number = models.BigIntegerField()  # the last block that stayed
    fork_hash = models.TextField(db_collation="C")
    old_number = models.BigIntegerField()
    old_hash = models.TextField(db_collation="C")
    depth = models.IntegerField()
    removed_events = models.IntegerField()
    transactions = models.IntegerField(default=0)  # followed ones that were in removed blocks
    seen_at = models.DateTimeField()

    class Meta:
        db_table = "chain_reorganisation"
        ordering = ("-seen_at",)

    def __str__(self) -> str:
        return f"{self.network_id}: {self.depth} blocks above {self.fork_number}"
