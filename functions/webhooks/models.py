"""Models of webhooks and their deliveries, which ``service`` and ``outbox`` write."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Hook(models.Model):
    """A webhook: of a function (``function_name``) or of a trigger of a class (the other two).

    ``trigger_name`` is Parse's name for the event. After a call without a response,
    deliveries wait until ``rests_until``. Deliveries of a ``background`` webhook are sent by a
    worker alone, not before the client gets its response.
    """

    function_name = models.TextField(null=True, db_collation="C")
    class_name = models.TextField(null=True, db_collation="C")
    trigger_name = models.TextField(null=True, db_collation="C")
    url = models.TextField()
    background = models.BooleanField(default=False, db_default=False)
    rests_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "functions_hook"
        ordering = ("class_name", "trigger_name", "function_name")
        verbose_name = "webhook"
        constraints = (
            models.UniqueConstraint(fields=("function_name",), name="functions_hook_function"),
            models.UniqueConstraint(
                fields=("class_name", "trigger_name"), name="functions_hook_trigger"
            ),
            models.CheckConstraint(
                condition=(
                    Q(function_name__isnull=False, class_name=None, trigger_name=None)
                    | Q(
                        function_name=None,
                        class_name__isnull=False,
                        trigger_name__isnull=False,
                    )
                ),
                name="functions_hook_is_one_kind",
            ),
        )

    def __str__(self) -> str:
        return self.function_name or f"{self.trigger_name} of {self.class_name}"


class Delivery(models.Model):
    """A notification for a webhook, inserted in the transaction of its event.

    ``due_at`` is the time of the next attempt; ``key`` is the same for all attempts. ``hook_id``
    may be the id of a deleted hook.
    """

    class State(models.TextChoices):
        PENDING = "pending", "to be delivered"
        DELIVERED = "delivered", "delivered"
        DEAD = "dead", "given up"

    key = models.TextField(unique=True, db_collation="C")
    hook_id = models.BigIntegerField()
    about = models.TextField()
    body = models.TextField()
    state = models.TextField(choices=State.choices, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    last_error = models.TextField(default="", blank=True)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "functions_delivery"
        ordering = ("-id",)
        verbose_name = "webhook delivery"
        verbose_name_plural = "webhook deliveries"
        indexes = (
            models.Index(
                fields=("hook_id", "due_at"),
                name="functions_delivery_hook_due",
                condition=Q(state="pending"),
            ),
            models.Index(
                fields=("ended_at",),
                name="functions_delivery_ended",
                condition=Q(ended_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.key
