"""The tables of the object store.

Only ``store`` and ``registry`` write them; everybody else goes through ``service``.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from objects.database.fresh_rows import ANY_NUMBER

GENERIC_TABLE = "objects_object"
"""The partitioned table of the generic classes; a partition adds ``_`` and the class's id."""

VERSION_SEQUENCE = "objects_class_version"
"""Every change of any class takes its number from here, so that no version comes twice."""

CHANGE_TABLES = ("objects_interest", "objects_change", "objects_change_trim")
"""Of ``objects.changes``. They are unlogged, and empty after a crash: nothing that is backed up."""


class ObjectClass(models.Model):
    """A class: its fields, its permissions, its indexes.

    ``definition`` is the wire form that ``/schemas`` shows (``fields``, ``classLevelPermissions``,
    ``indexes``), without the fields that every class has. ``indexOrders`` has the fields of each
    index of several in order, which ``jsonb`` doesn't keep for the keys of objects.
    ``index_version`` says what the index of all fields is on (``class_rows.INDEXED``).
    """

    # The service makes those of models; each of the others has a partition.
    fresh_rows = ANY_NUMBER

    name = models.CharField(max_length=128, unique=True)
    definition = models.JSONField(default=dict)
    version = models.BigIntegerField()
    index_version = models.SmallIntegerField(db_default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "objects_class"
        ordering = ("name",)
        verbose_name = "class"
        verbose_name_plural = "classes"

    def __str__(self) -> str:
        return self.name


class AbstractObject(models.Model):
    """What every stored object has. A model-backed class adds its promoted columns.

    ``read_acl`` and ``write_acl`` hold the ids that may read and write (``*``, user ids,
    ``role:NAME``); null means everybody, empty means the master key alone. ``data`` holds the
    fields that have no column, in their wire form.
    """

    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    read_acl = ArrayField(models.TextField(), null=True, blank=True)
    write_acl = ArrayField(models.TextField(), null=True, blank=True)
    data = models.JSONField(default=dict)

    class Meta:
        abstract = True


class ModelBackedObject(AbstractObject):
    """Base of a Django model whose rows are a class's objects (see ``registry.model_class``).

    Text columns need ``db_collation="C"``: texts are compared by code point everywhere.
    """

    object_id = models.TextField(primary_key=True, db_collation="C")

    class Meta:
        abstract = True


class StoredObject(AbstractObject):
    """An object of a generic class. The table is partitioned by class (see the first migration)."""

    pk = models.CompositePrimaryKey("object_class_id", "object_id")
    object_class = models.ForeignKey(
        ObjectClass, models.DO_NOTHING, db_column="class_id", db_constraint=False, db_index=False
    )
    object_id = models.TextField()

    class Meta:
        db_table = GENERIC_TABLE
        managed = False
        verbose_name = "object"

    def __str__(self) -> str:
        return self.object_id


class RelationMember(models.Model):
    """One member of a relation: ``owning_id`` has ``related_id`` in its field ``key``."""

    pk = models.CompositePrimaryKey("class_id", "key", "owning_id", "related_id")
    class_id = models.BigIntegerField()
    key = models.TextField()
    owning_id = models.TextField()
    related_id = models.TextField()

    class Meta:
        db_table = "objects_relation"
        indexes = (
            models.Index(fields=("class_id", "key", "related_id"), name="objects_relation_related"),
        )


class Maintenance(models.Model):
    """Maintenance mode: one row while it is on, none otherwise.

    See ``objects.database.maintenance``.
    """

    fresh_rows = ANY_NUMBER

    id = models.SmallIntegerField(primary_key=True)
    message = models.TextField()
    since = models.DateTimeField()
    chain_paused = models.BooleanField()

    class Meta:
        db_table = "objects_maintenance"
        verbose_name = "maintenance mode"
        verbose_name_plural = "maintenance mode"

    def __str__(self) -> str:
        return "maintenance mode"


class Hold(models.Model):
    """The hold of a restored instance: one row while it is on (see ``objects.database.hold``)."""

    fresh_rows = ANY_NUMBER

    id = models.SmallIntegerField(primary_key=True)
    since = models.DateTimeField()

    class Meta:
        db_table = "objects_hold"
        verbose_name = "hold"
        verbose_name_plural = "hold"

    def __str__(self) -> str:
        return "hold"


class ImportProgress(models.Model):
    """How far an import has come, written in the transactions that store its objects.

    ``key`` identifies the import (see ``objects.exchange.checkpoint``); the counts are those of its
    checkpoint.
    """

    fresh_rows = ANY_NUMBER

    key = models.CharField(max_length=64, primary_key=True)
    rows = models.BigIntegerField()
    stored = models.BigIntegerField()
    refused = models.BigIntegerField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "objects_import"
        verbose_name = "import"

    def __str__(self) -> str:
        return self.key
