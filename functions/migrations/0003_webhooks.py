"""Webhooks, and what they have to be told."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("functions", "0002_job_status")]

    operations = [
        migrations.CreateModel(
            name="Hook",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("function_name", models.TextField(db_collation="C", null=True)),
                ("class_name", models.TextField(db_collation="C", null=True)),
                ("trigger_name", models.TextField(db_collation="C", null=True)),
                ("url", models.TextField()),
                ("rests_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name": "webhook",
                "db_table": "functions_hook",
                "ordering": ("class_name", "trigger_name", "function_name"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("function_name",), name="functions_hook_function"
                    ),
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
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.TextField(db_collation="C", unique=True)),
                ("hook_id", models.BigIntegerField()),
                ("about", models.TextField()),
                ("body", models.TextField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("pending", "to be delivered"),
                            ("delivered", "delivered"),
                            ("dead", "given up"),
                        ],
                        default="pending",
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("last_error", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "webhook delivery",
                "verbose_name_plural": "webhook deliveries",
                "db_table": "functions_delivery",
                "ordering": ("-id",),
                "indexes": [
                    models.Index(
                        fields=("due_at",),
                        name="functions_delivery_due",
                        condition=Q(state="pending"),
                    ),
                    models.Index(
                        fields=("ended_at",),
                        name="functions_delivery_ended",
                        condition=Q(ended_at__isnull=False),
                    ),
                ],
            },
        ),
    ]
