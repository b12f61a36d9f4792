"""Networks of cursors as text, unique: events are joined with cursors by it."""

from django.db import migrations, models
from django.db.models.functions import Cast


class Migration(migrations.Migration):
    dependencies = [("chain", "0009_proved_blocks")]

    operations = [
        migrations.AddConstraint(
            "cursor",
            models.UniqueConstraint(
                Cast("network_id", models.TextField()), name="chain_cursor_text"
            ),
        )
    ]
