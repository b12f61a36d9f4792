"""Deliveries that are due, by webhook: those of one with many don't hide the others'."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("functions", "0006_hook_background")]

    operations = [
        migrations.AddIndex(
            "delivery",
            models.Index(
                condition=models.Q(state="pending"),
                fields=["hook_id", "due_at"],
                name="functions_delivery_hook_due",
            ),
        ),
        migrations.RemoveIndex("delivery", "functions_delivery_due"),
    ]
