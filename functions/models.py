"""The tables of server functions."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, RegexValidator
from django.db import models


class FeatureFlag(models.Model):
    """A switch for one feature (``functions.feature_flags.features``)."""

    fresh_rows = 3  # those of migration 0001

    name = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"\A[A-Za-z][A-Za-z0-9_]*\Z", "Letters, digits and _ only.")],
    )
    on = models.BooleanField(
        default=False, help_text="Whether users have the feature: all, or the share below."
    )
    rollout = models.PositiveSmallIntegerField(
        default=100,
        validators=[MaxValueValidator(100)],
        help_text="While it is on: percentage of all users who have it, besides beta testers.",
    )
    description = models.TextField(blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "functions_feature_flag"
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(rollout__lte=100), name="functions_feature_flag_rollout"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Function(models.Model):
    """Server functions have no table; staff have permissions to see them and to call them."""

    class Meta:
        managed = False
        default_permissions = ("view",)
        permissions = (("call_function", "Can call server functions"),)


# Django looks for an application's models here.
from functions.jobs import models as jobs  # noqa: E402, F401
from functions.webhooks import models as hooks  # noqa: E402, F401
