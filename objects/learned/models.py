"""Models of query costs and of the indexes built because of them.

Neither table has a foreign key to ``objects_class``: its check would wait for transactions that
change a class. ``registry.drop`` removes the rows of a class, and ``schedule`` those that are left.
"""

from __future__ import annotations

from django.db import models

from objects.database.fresh_rows import ANY_NUMBER


class QueryShape(models.Model):
    """Queries of one shape (``objects.core.indexes.shapes``) and what they cost.

    ``calls``, ``seconds`` and ``results`` count since the class has got an index that concerns the
    shape, ``before_…`` until then; ``window_…`` count for a day at most. ``slow_…`` are those over
    ``SLOW_QUERY``. Queries of a version of the class before ``version`` aren't counted any more.
    """

    fresh_rows = ANY_NUMBER

    id = models.BigAutoField(primary_key=True)
    class_id = models.BigIntegerField()
    digest = models.CharField(max_length=32)
    shape = models.TextField()
    version = models.BigIntegerField()
    calls = models.BigIntegerField(default=0)
    seconds = models.FloatField(default=0)
    results = models.BigIntegerField(default=0)
    before_calls = models.BigIntegerField(default=0)
    before_seconds = models.FloatField(default=0)
    window_start = models.DateTimeField()
    window_calls = models.BigIntegerField(default=0)
    window_seconds = models.FloatField(default=0)
    window_results = models.BigIntegerField(default=0)
    slow_calls = models.BigIntegerField(default=0)
    slow_seconds = models.FloatField(default=0)
    slow_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField()

    class Meta:
        db_table = "objects_query_shape"
        constraints = (
            models.UniqueConstraint(fields=("class_id", "digest"), name="objects_query_shape_key"),
        )

    def __str__(self) -> str:
        return self.shape


class LearnedIndex(models.Model):
    """An index that was built for a shape, is being built, or failed.

    ``fields`` is a list of pairs (field, direction); ``name`` is the index's name in the database.
    Queries use it while ``state`` is ``valid``. ``scans`` is the counter of ``pg_stat`` when it was
    read last, ``used_at`` when it had changed last, later by times without a reading. A
    failed one isn't built before ``retry_at``. ``before_…`` is what the queries of ``shape`` had
    cost until it was built, ``version`` the version of the class with it.
    """

    fresh_rows = ANY_NUMBER

    BUILDING, VALID, FAILED = "building", "valid", "failed"

    id = models.BigAutoField(primary_key=True)
    class_id = models.BigIntegerField()
    name = models.CharField(max_length=63, unique=True)
    fields = models.JSONField()
    state = models.CharField(max_length=16)
    shape = models.TextField()
    reason = models.TextField(default="")
    attempts = models.IntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField()
    version = models.BigIntegerField(default=0)
    before_calls = models.BigIntegerField(default=0)
    before_seconds = models.FloatField(default=0)
    built_at = models.DateTimeField(null=True)
    build_seconds = models.FloatField(null=True)
    scans = models.BigIntegerField(default=0)
    used_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "objects_learned_index"
        indexes = (models.Index(fields=("class_id",), name="objects_learned_class"),)

    def __str__(self) -> str:
        return self.name
