"""A model with a column of each type that a promoted field may have."""

from __future__ import annotations

from django.db import models

from objects.definitions.models import ModelBackedObject


class Book(ModelBackedObject):
    title = models.TextField(null=True, db_collation="C")
    isbn = models.CharField(max_length=20, null=True, unique=True, db_collation="C")
    pages = models.BigIntegerField(null=True)
    price = models.DecimalField(max_digits=20, decimal_places=2, null=True)
    in_print = models.BooleanField(null=True)
    published = models.DateTimeField(null=True)
    author = models.TextField(null=True, db_collation="C")
    tags = models.JSONField(null=True)
    cover = models.JSONField(null=True)

    class Meta:
        db_table = "catalogue_book"
        constraints = (
            models.CheckConstraint(condition=models.Q(pages__gte=0), name="pages_not_negative"),
        )

    def __str__(self) -> str:
        return self.title or self.object_id
